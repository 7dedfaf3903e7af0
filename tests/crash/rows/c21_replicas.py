"""C21: kill -9 of replicas with busy remote workers; the workers continue with another one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from laneway import Laneway
from tests.crash.load import cancel_some, feed
from tests.crash.remote import GrpcReplica, RemoteFleet
from tests.crash.row_run import DRAIN_S, RowRun, Stuck, cancel_load, wait_until

FAULTS, JOBS = 8, 2400
EVERY_S = 3.5
WORKERS = 3
# Running at each kill: some end before the kill is noticed, some after recovery.
HELD = 24
SHORTEST_MS, LONGEST_MS = 400, 2400
GOES_ON_S = 4.0
# Handlers that fail in their first attempt, which is charged unless it was returned unstarted.
CHARGED = {"flaky": 1}


async def inject(run: RowRun) -> None:
    kills = run.count(FAULTS)
    cancelled = run.count(30, 4)
    fleet = RemoteFleet(run)
    try:
        await fleet.open(WORKERS)
        async with run.client() as client:
            total = run.count(JOBS) - cancelled - kills * HELD
            load = asyncio.gather(
                feed(run, client, max(50, total), kills, EVERY_S),
                cancel_some(run, client, cancelled, kills * EVERY_S),
            )
            try:
                waits = [
                    await _kill(run, client, fleet, fleet.replicas[number % 2])
                    for number in range(kills)
                ]
                await load
            finally:
                await cancel_load(load)
            await run.drain(DRAIN_S + LONGEST_MS / 1000 + GOES_ON_S)
        run.must_in_time(
            f"what was in hand is accepted ≤ {GOES_ON_S:g} s after it can be, by the other replica",
            ", ".join(f"{seconds:.2f}" for seconds in waits),
            max(waits) <= GOES_ON_S,
        )
        gone = [worker for worker in fleet.workers if not worker.is_alive]
        run.result.must("remote workers that exited", len(gone), held=not gone)
    finally:
        await run.stop_workers()
        fleet.close()


async def _kill(run: RowRun, client: Laneway, fleet: RemoteFleet, doomed: GrpcReplica) -> float:
    """Kill a replica; return the delay until all running jobs are stored, beyond their duration."""
    jobs = [
        run.job("quick", {"max_retries": 0}, ms=run.random.randint(SHORTEST_MS, LONGEST_MS))
        for _ in range(HELD)
    ]
    held = set(await run.submit(client, *jobs))

    def begun() -> bool:
        return held <= {event.job for event in run.handlers().of("start")}

    await wait_until(begun, 60, "the jobs to be held have begun")
    doomed.kill()
    at = time.monotonic()

    def stored() -> bool:
        query = "select count(*) from laneway.jobs_view where id = any (%s::uuid[]) and status = %s"
        return bool(run.ask(query, list(held), "completed") == HELD)

    try:
        await wait_until(
            stored, LONGEST_MS / 1000 + 2 * GOES_ON_S, "the jobs in hand are completed"
        )
    except Stuck as stuck:
        run.result.lines.append(f"     {stuck}")
    took = time.monotonic() - at
    doomed.start()
    await fleet.serving(doomed)
    return max(0.0, took - LONGEST_MS / 1000)


def check(run: RowRun) -> None:
    lost = [event for event in run.history.of("write") if event.more["verb"] == "lost"]
    run.result.must("attempts taken from workers that live", len(lost), held=not lost)
    types = {str(job): str(kind) for job, kind in _types(run)}
    charged = Counter(
        types[job]
        for job, found in run.final.jobs.items()
        if found.status == "completed" and found.retries > CHARGED.get(types[job], 0)
    )
    run.result.must("jobs charged for a replica's death", dict(charged), held=not charged)
    failed = [job for job in run.final.jobs.values() if job.status == "failed"]
    run.result.must("jobs failed by it", len(failed), held=not failed)
    run.result.figures |= {"replica_kills": run.result.faults, "replica_lost": len(lost)}


def _types(run: RowRun) -> list[tuple[object, ...]]:
    return run.conn.execute("select id::text, job_type from laneway.jobs").fetchall()
