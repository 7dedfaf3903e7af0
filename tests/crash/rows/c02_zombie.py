"""C2: a worker is stopped, its jobs are given to another, and it goes on while they run there.

Each kind of write is tried by the superseded attempt. Its heartbeat process stays stopped until the
write was answered, so that nothing but the database can refuse it. The last kind is the heartbeat
itself. Its process would know by its own clock that a lapsed lease is lost, and not even ask; so
there the leases are long, and the test moves their end in the database: clocks may disagree.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

from laneway import Laneway
from laneway.testing import faults
from tests.crash.processes import WorkerProcess
from tests.crash.stage import Stage, until

KINDS = ("complete", "fail", "progress", "release", "heartbeat")
# How the write is called where the database is tapped.
VERBS = {
    "complete": "finish",
    "fail": "fail",
    "progress": "report",
    "release": "release",
    "heartbeat": "heartbeat",
}
AT_A_TIME = 10
LONG_LEASE_S = 9


async def play(stage: Stage) -> None:
    stage.worker_settings = {"LANEWAY_SHUTDOWN_GRACE": "0.05"}
    async with stage.client() as client:
        for kind in kinds(stage):
            await play_kind(stage, client, kind)


def kinds(stage: Stage) -> tuple[str, ...]:
    """The kinds of write this run tries."""
    return stage.only or KINDS[: stage.count(len(KINDS))]


async def play_kind(stage: Stage, client: Laneway, kind: str) -> None:
    """Ten superseded attempts of one kind, at a time."""
    gates = stage.sink / f"gates-{kind}"
    gates.mkdir()
    lease_s = LONG_LEASE_S if kind == "heartbeat" else 2
    stage.conn.execute(
        "update laneway.worker_lanes set lease_seconds = %s where name = 'default'", [lease_s]
    )
    first = stage.start_worker(lanes="default")
    jobs = [stage.job("zombie", kind=kind, gates=str(gates)) for _ in range(AT_A_TIME)]
    await stage.ready(first)
    ids = await stage.submit(client, *jobs)
    await until(lambda: _running(stage, 1) == AT_A_TIME, 60, "the first worker runs all")

    second = stage.start_worker(lanes="default")
    if kind == "heartbeat":
        await stage.ready(second)
    asleep = first.tree()
    faults.pause(*asleep)
    if kind == "heartbeat":
        stage.conn.execute("update laneway.lease set lease_until = clock_timestamp()")
    await until(lambda: _running(stage, 2) == AT_A_TIME, 60, "the second worker runs all")

    woken_at = time.monotonic()
    for _ in ids:
        stage.fault(kind=kind)
    _wake(kind, first, asleep, gates)
    refused = await until(
        lambda: _answered(stage, kind) >= AT_A_TIME, 60, "every write is answered"
    )
    faults.resume(*asleep)
    await until(lambda: _stopped(stage, ids) == AT_A_TIME, 60, "the superseded handlers stop")
    late = _latest_stop(stage, ids) - woken_at
    (gates / "end").touch()
    await until(lambda: stage.waiting() == 0, 60, "the second attempts finish")
    stage.must_in_time(
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


def _running(stage: Stage, attempt: int) -> int:
    events = stage.handlers().of("start")
    running = stage.ask("select count(*) from laneway.lease where attempt = %s", attempt)
    started = {e.job for e in events if e.attempt == attempt} & _leased(stage)
    return min(int(running), len(started))


def _leased(stage: Stage) -> set[str]:
    rows = stage.conn.execute(
        "select j.id::text from laneway.lease l join laneway.jobs j using (seq)"
    )
    return {row[0] for row in rows}


def _answered(stage: Stage, kind: str) -> int:
    """Stale writes of this kind that the database has answered, whatever it said."""
    return int(
        stage.ask(
            "select count(distinct w.seq) from crash.seen w join laneway.jobs j on j.seq = w.seq"
            " join crash.seen c on c.seq = w.seq and c.what = 'claim' and c.attempt > w.attempt"
            " where w.what = 'write' and c.n < w.n and w.more ->> 'verb' = %s"
            " and j.payload ->> 'kind' = %s",
            VERBS[kind],
            kind,
        )
    )


def _stops(stage: Stage, ids: list[str]) -> dict[str, float]:
    return {
        str(e.job): float(e.more["t"])
        for e in stage.handlers().of("stop")
        if e.attempt == 1 and e.job in ids
    }


def _stopped(stage: Stage, ids: list[str]) -> int:
    return len(_stops(stage, ids))


def _latest_stop(stage: Stage, ids: list[str]) -> float:
    return max(_stops(stage, ids).values())


def look(stage: Stage) -> None:
    history, result = stage.history, stage.result
    expected = AT_A_TIME * len(kinds(stage))
    refused = {
        (event.job, event.more["verb"])
        for event in history.of("write")
        if event.attempt == 1 and event.more["answer"] == "fenced"
    }
    jobs = {job: kind for kind in kinds(stage) for job in _jobs_of(stage, kind)}
    told = sum((job, VERBS[kind]) in refused for job, kind in jobs.items())
    result.stale_refused = told
    result.must(
        "superseded attempts told that they are fenced",
        f"{told}/{expected}",
        held=told == expected,
    )
    result.must("stale writes accepted", result.stale_accepted, held=result.stale_accepted == 0)
    stands = sum(
        job.status == "completed" and job.attempt == 2 and job.result == {"by": 2}
        for job in stage.final.jobs.values()
    )
    result.must(
        "results of the second attempts stand", f"{stands}/{expected}", held=stands == expected
    )
    effects = [event for event in history.of("effect") if event.attempt == 1]
    late = sum(not event.more["accepted"] for event in effects)
    result.lines.append(f"     a sink that compares attempts refused {late} late effects")


def _jobs_of(stage: Stage, kind: str) -> list[str]:
    rows = stage.conn.execute(
        "select id::text from laneway.jobs where payload ->> 'kind' = %s", [kind]
    )
    return [row[0] for row in rows]
