"""C21: kill -9 of replicas whose remote workers are busy; the workers go on with another one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from laneway import Laneway
from tests.crash.load import cancel_some, feed
from tests.crash.remote import Dispatching, Post
from tests.crash.stage import DRAIN_S, Stage, Stuck, given_up, until

FAULTS, JOBS = 8, 2400
EVERY_S = 3.5
WORKERS = 3
# In hand at each kill: some end before anybody has noticed it, some when all is well again.
HELD = 24
SHORTEST_MS, LONGEST_MS = 400, 2400
GOES_ON_S = 4.0
# Handlers that fail once by themselves, and are charged for it.
CHARGED = {"flaky": 1}


async def play(stage: Stage) -> None:
    kills = stage.count(FAULTS)
    cancelled = stage.count(30, 4)
    post = Post(stage)
    try:
        await post.open(WORKERS)
        async with stage.client() as client:
            total = stage.count(JOBS) - cancelled - kills * HELD
            load = asyncio.gather(
                feed(stage, client, max(50, total), kills, EVERY_S),
                cancel_some(stage, client, cancelled, kills * EVERY_S),
            )
            try:
                waits = [
                    await _kill(stage, client, post, post.replicas[number % 2])
                    for number in range(kills)
                ]
                await load
            finally:
                await given_up(load)
            await stage.drain(DRAIN_S + LONGEST_MS / 1000 + GOES_ON_S)
        stage.must_in_time(
            f"what was in hand is accepted ≤ {GOES_ON_S:g} s after it can be, by the other replica",
            ", ".join(f"{seconds:.2f}" for seconds in waits),
            max(waits) <= GOES_ON_S,
        )
        gone = [worker for worker in post.workers if not worker.is_alive]
        stage.result.must("remote workers that exited", len(gone), held=not gone)
    finally:
        await stage.stop_workers()
        post.close()


async def _kill(stage: Stage, client: Laneway, post: Post, doomed: Dispatching) -> float:
    """Seconds until all that was in hand is stored, beyond the time that it takes."""
    jobs = [
        stage.job("quick", {"max_retries": 0}, ms=stage.random.randint(SHORTEST_MS, LONGEST_MS))
        for _ in range(HELD)
    ]
    held = set(await stage.submit(client, *jobs))

    def begun() -> bool:
        return held <= {event.job for event in stage.handlers().of("start")}

    await until(begun, 60, "the jobs to be held have begun")
    doomed.kill()
    at = time.monotonic()

    def stored() -> bool:
        query = "select count(*) from laneway.jobs_view where id = any (%s::uuid[]) and status = %s"
        return bool(stage.ask(query, list(held), "completed") == HELD)

    try:
        await until(stored, LONGEST_MS / 1000 + 2 * GOES_ON_S, "the jobs in hand are completed")
    except Stuck as stuck:
        stage.result.lines.append(f"     {stuck}")
    took = time.monotonic() - at
    doomed.start()
    await post.serving(doomed)
    return max(0.0, took - LONGEST_MS / 1000)


def look(stage: Stage) -> None:
    lost = [event for event in stage.history.of("write") if event.more["verb"] == "lost"]
    stage.result.must("attempts taken from workers that live", len(lost), held=not lost)
    types = {str(job): str(kind) for job, kind in _types(stage)}
    charged = Counter(
        types[job]
        for job, found in stage.final.jobs.items()
        if found.status == "completed" and found.retries != CHARGED.get(types[job], 0)
    )
    stage.result.must("jobs charged for a replica's death", dict(charged), held=not charged)
    failed = [job for job in stage.final.jobs.values() if job.status == "failed"]
    stage.result.must("jobs failed by it", len(failed), held=not failed)
    stage.result.figures |= {"replica_kills": stage.result.faults, "replica_lost": len(lost)}


def _types(stage: Stage) -> list[tuple[object, ...]]:
    return stage.conn.execute("select id::text, job_type from laneway.jobs").fetchall()
