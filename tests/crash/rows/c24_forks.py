"""C24: kill -9 of workers whose handlers have forked, and SIGTERM to the last of them."""

from __future__ import annotations

from functools import partial

from laneway import Laneway
from laneway.testing import faults
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import READY_S, RowRun, percentile, wait_until

KILLS = 12
GRACE_S = 1.0
RECOVERY_S = 4.0
# The grace, the kill of processes that handlers left, and a slow machine.
STOP_S = GRACE_S + 8.0
HOW = ("fork", "pool", "leave")


async def inject(run: RowRun) -> None:
    run.worker_settings = {"LANEWAY_SHUTDOWN_GRACE": str(GRACE_S)}
    workers = [run.start_worker(), run.start_worker()]
    await run.ready(*workers)
    took = []
    try:
        async with run.client() as client:
            for i in range(run.count(KILLS, 3)):
                (job,) = await run.submit(client, run.job("forking", how=HOW[i % 3]))
                victim = await _holder(run, job, workers)
                killed_at = run.kill(victim, victim.pid)
                victim.process.wait()
                claimed_at = await _claimed_again(run, job)
                took.append(claimed_at - killed_at)
                workers[workers.index(victim)] = following = run.start_worker()
                await run.ready(following)
            await _stop(run, client, workers)
            await run.drain()
    finally:
        faults.end_all(_forked(run))
    run.result.figures["fork_kills"] = len(took)
    run.result.must(
        f"jobs of a killed worker that had forked run again ≤ {RECOVERY_S:g} s",
        f"{max(took):.2f} s of {len(took)} (p50 {percentile(took, 0.5):.2f} s)",
        held=max(took) <= RECOVERY_S,
    )


async def _holder(run: RowRun, job: str, workers: list[WorkerProcess]) -> WorkerProcess:
    """The worker that runs the job, once its handler has forked."""
    found: list[WorkerProcess] = []

    def look() -> bool:
        pids = {e.more["pid"] for e in run.handlers().of("forked") if e.job == job}
        found[:] = [worker for worker in workers if worker.pid in pids]
        return bool(found)

    await wait_until(look, READY_S, "the handler has forked")
    return found[0]


async def _claimed_again(run: RowRun, job: str) -> float:
    """The time of the second attempt's claim, by the database's clock."""
    claimed = (
        "select extract(epoch from claimed_at)::float8 from laneway.jobs_view"
        " where id = %s and attempt >= 2"
    )
    await wait_until(
        lambda: run.ask(claimed, job) is not None, 60, "the job is claimed again", 0.01
    )
    return float(run.ask(claimed, job))


async def _stop(run: RowRun, client: Laneway, workers: list[WorkerProcess]) -> None:
    """Check that a worker whose handlers have forked stops like any other."""
    for how in HOW:
        (job,) = await run.submit(client, run.job("forking", how=how))
        victim = await _holder(run, job, workers)
        victim.terminate()
        run.fault(kind="SIGTERM")
        took = await wait_until(partial(_is_gone, victim), 60, "the worker exits", 0.01)
        run.result.must(
            f"exit with a handler that did {how!r} ≤ {STOP_S:g} s",
            f"{took:.2f} s",
            held=took <= STOP_S,
        )
        workers[workers.index(victim)] = following = run.start_worker()
        await run.ready(following)


def _is_gone(worker: WorkerProcess) -> bool:
    return not worker.is_alive


def _forked(run: RowRun) -> list[int]:
    return [event.more["child"] for event in run.handlers().of("forked")]


def check(run: RowRun) -> None:
    ends = [job.status for job in run.final.jobs.values()]
    done = ends.count("completed")
    run.result.must("jobs completed", f"{done} of {len(ends)}", held=done == len(ends))
