"""C2: a worker is stopped, another claims its jobs, and the first resumes while they run.

The superseded attempt tries each kind of write. Its heartbeat process stays stopped until the
database has answered, so that only the database can refuse the write. The last kind is the
heartbeat itself. Its process would see by its own clock that the lease has lapsed, and not try. So
there the leases are long, and the test moves their end in the database: clocks may disagree.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

from laneway import Laneway
from laneway.testing import faults
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import RowRun, wait_until

KINDS = ("complete", "fail", "progress", "release", "heartbeat")
# The name of the write in the database recorder.
VERBS = {
    "complete": "finish",
    "fail": "fail",
    "progress": "report",
    "release": "release",
    "heartbeat": "heartbeat",
}
AT_A_TIME = 10
LONG_LEASE_S = 9


async def inject(run: RowRun) -> None:
    run.worker_settings = {"LANEWAY_SHUTDOWN_GRACE": "0.05"}
    async with run.client() as client:
        for kind in kinds(run):
            await inject_kind(run, client, kind)


def kinds(run: RowRun) -> tuple[str, ...]:
    """The kinds of write this run tries."""
    return run.only or KINDS[: run.count(len(KINDS))]


async def inject_kind(run: RowRun, client: Laneway, kind: str) -> None:
    """Run ten superseded attempts of one kind at once."""
    gates = run.sink / f"gates-{kind}"
    gates.mkdir()
    lease_s = LONG_LEASE_S if kind == "heartbeat" else 2
    run.conn.execute(
        "update laneway.worker_lanes set lease_seconds = %s where name = 'default'", [lease_s]
    )
    first = run.start_worker(lanes="default")
    jobs = [run.job("zombie", kind=kind, gates=str(gates)) for _ in range(AT_A_TIME)]
    await run.ready(first)
    ids = await run.submit(client, *jobs)
    await wait_until(lambda: _running(run, 1) == AT_A_TIME, 60, "the first worker runs all")

    second = run.start_worker(lanes="default")
    if kind == "heartbeat":
        await run.ready(second)
    asleep = first.tree()
    faults.pause(*asleep)
    if kind == "heartbeat":
        run.conn.execute("update laneway.lease set lease_until = clock_timestamp()")
    await wait_until(lambda: _running(run, 2) == AT_A_TIME, 60, "the second worker runs all")

    woken_at = time.monotonic()
    for _ in ids:
        run.fault(kind=kind)
    _wake(kind, first, asleep, gates)
    refused = await wait_until(
        lambda: _answered(run, kind) >= AT_A_TIME, 60, "every write is answered"
    )
    faults.resume(*asleep)
    await wait_until(lambda: _stopped(run, ids) == AT_A_TIME, 60, "the superseded handlers stop")
    late = _latest_stop(run, ids) - woken_at
    (gates / "end").touch()
    await wait_until(lambda: run.waiting() == 0, 60, "the second attempts finish")
    run.must_in_time(
        f"{kind}: superseded handlers stop ≤ {lease_s / 3:.2f} s after they could know",
        f"{late:.2f} s; all answered after {refused:.2f} s",
        late <= lease_s / 3,
    )
    for worker in (first, second):
        worker.end()


def _wake(kind: str, first: WorkerProcess, asleep: list[int], gates: Path) -> None:
    if kind == "heartbeat":
        faults.resume(*asleep)
        return
    if kind == "release":
        faults.send(signal.SIGTERM, [first.pid])
    else:
        (gates / "write").touch()
    faults.resume(first.pid)


def _running(run: RowRun, attempt: int) -> int:
    events = run.handlers().of("start")
    running = run.ask("select count(*) from laneway.lease where attempt = %s", attempt)
    started = {e.job for e in events if e.attempt == attempt} & _leased(run)
    return min(int(running), len(started))


def _leased(run: RowRun) -> set[str]:
    rows = run.conn.execute(
        "select j.id::text from laneway.lease l join laneway.jobs j using (seq)"
    )
    return {row[0] for row in rows}


def _answered(run: RowRun, kind: str) -> int:
    """Count stale writes of this kind that the database has answered."""
    return int(
        run.ask(
            "select count(distinct w.seq) from crash.seen w join laneway.jobs j on j.seq = w.seq"
            " join crash.seen c on c.seq = w.seq and c.what = 'claim' and c.attempt > w.attempt"
            " where w.what = 'write' and c.n < w.n and w.more ->> 'verb' = %s"
            " and j.payload ->> 'kind' = %s",
            VERBS[kind],
            kind,
        )
    )


def _stops(run: RowRun, ids: list[str]) -> dict[str, float]:
    return {
        str(e.job): float(e.more["t"])
        for e in run.handlers().of("stop")
        if e.attempt == 1 and e.job in ids
    }


def _stopped(run: RowRun, ids: list[str]) -> int:
    return len(_stops(run, ids))


def _latest_stop(run: RowRun, ids: list[str]) -> float:
    return max(_stops(run, ids).values())


def check(run: RowRun) -> None:
    history, result = run.history, run.result
    expected = AT_A_TIME * len(kinds(run))
    refused = {
        (event.job, event.more["verb"])
        for event in history.of("write")
        if event.attempt == 1 and event.more["answer"] == "fenced"
    }
    jobs = {job: kind for kind in kinds(run) for job in _jobs_of(run, kind)}
    fenced = sum((job, VERBS[kind]) in refused for job, kind in jobs.items())
    result.stale_refused = fenced
    result.must(
        "superseded attempts that were fenced",
        f"{fenced}/{expected}",
        held=fenced == expected,
    )
    result.must("stale writes accepted", result.stale_accepted, held=result.stale_accepted == 0)
    stands = sum(
        job.status == "completed" and job.attempt == 2 and job.result == {"by": 2}
        for job in run.final.jobs.values()
    )
    result.must(
        "results of the second attempts stand", f"{stands}/{expected}", held=stands == expected
    )
    effects = [event for event in history.of("effect") if event.attempt == 1]
    late = sum(not event.more["accepted"] for event in effects)
    result.lines.append(f"     a sink that compares attempts refused {late} late effects")


def _jobs_of(run: RowRun, kind: str) -> list[str]:
    rows = run.conn.execute(
        "select id::text from laneway.jobs where payload ->> 'kind' = %s", [kind]
    )
    return [row[0] for row in rows]
