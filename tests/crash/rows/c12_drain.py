"""C12: SIGTERM with running jobs, half of them shorter than the grace and half longer."""

from __future__ import annotations

import asyncio

from laneway import Laneway
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import RowRun, wait_until

ROUNDS, EACH = 10, 20
GRACE_S = 1.0
SHORT_S, LONG_S = 0.4, 60.0
AGAIN_S = 1.0


async def inject(run: RowRun) -> None:
    run.worker_settings = {"LANEWAY_SHUTDOWN_GRACE": str(GRACE_S)}
    rounds = run.count(ROUNDS, 2)
    worker = run.start_worker()
    await run.ready(worker)
    exits, waits = [], []
    async with run.client() as client:
        for _ in range(rounds):
            exit_s, wait_s, worker = await _round(run, client, worker)
            exits.append(exit_s)
            waits.append(wait_s)
        await _in_a_hurry(run, client, worker)
        await run.drain()
    run.result.must(
        f"exit ≤ grace {GRACE_S:g} s + 2 s", f"{max(exits):.2f} s", held=max(exits) <= GRACE_S + 2
    )
    run.result.must(
        f"long jobs claimed again ≤ {AGAIN_S:g} s after the exit",
        f"{max(waits):.2f} s",
        held=max(waits) <= AGAIN_S,
    )


async def _round(
    run: RowRun, client: Laneway, worker: WorkerProcess
) -> tuple[float, float, WorkerProcess]:
    """Shut down once; return its duration, how long its jobs waited, and their ids."""
    jobs = [run.job("patient", seconds=SHORT_S if i % 2 else LONG_S) for i in range(EACH)]
    ids = await run.submit(client, *jobs)
    await wait_until(lambda: _held(run, ids) == EACH, 10, "all jobs run")
    following = run.start_worker()
    await run.ready(following)
    worker.terminate()
    run.fault(kind="SIGTERM")
    exit_s = await wait_until(lambda: not worker.is_alive, GRACE_S + 10, "the worker exits", 0.01)
    wait_s = await wait_until(
        lambda: _held(run, ids, 1) == 0 == _due(run), 10, "claimed again", 0.01
    )
    return exit_s, wait_s, following


async def _in_a_hurry(run: RowRun, client: Laneway, worker: WorkerProcess) -> None:
    """Check that a second signal skips the grace."""
    jobs = [run.job("patient", seconds=LONG_S) for _ in range(4)]
    ids = await run.submit(client, *jobs)
    await wait_until(lambda: _held(run, ids) == len(ids), 10, "all jobs run")
    worker.terminate()
    await asyncio.sleep(0.05)
    worker.terminate()
    run.fault(kind="SIGTERM twice")
    took = await wait_until(lambda: not worker.is_alive, 20, "the worker exits", 0.01)
    free = int(run.ask("select count(*) from laneway.ready where attempt = 1 and retries = 0"))
    run.result.must(
        "a second signal releases at once",
        f"{took:.2f} s, {free}/{len(ids)} released without charge",
        held=took < GRACE_S and free == len(ids),
    )
    await run.ready(run.start_worker())


def _held(run: RowRun, ids: list[str], attempt: int = 1) -> int:
    return int(
        run.ask(
            "select count(*) from laneway.lease l join laneway.jobs j using (seq)"
            " where l.attempt = %s and j.id = any (%s::uuid[])",
            attempt,
            ids,
        )
    )


def _due(run: RowRun) -> int:
    return int(run.ask("select count(*) from laneway.ready"))


def check(run: RowRun) -> None:
    seconds: dict[str, float] = dict(
        run.conn.execute(
            "select id::text, (payload ->> 'seconds')::float8 from laneway.jobs"
        ).fetchall()
    )
    jobs = run.final.jobs.values()
    short = [job for job in jobs if seconds[job.job] == SHORT_S]
    long = [job for job in jobs if seconds[job.job] == LONG_S]
    again = sum(job.attempt != 1 for job in short)
    run.result.must("short jobs run again", f"{again} of {len(short)}", held=again == 0)
    free = sum(job.attempt == 2 and job.retries == 0 for job in long)
    run.result.must(
        "long jobs released without charge", f"{free} of {len(long)}", held=free == len(long)
    )
