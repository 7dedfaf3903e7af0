"""C22: PostgreSQL is stopped at once and started again under replicas and remote workers."""

from __future__ import annotations

import asyncio
import math

from tests.crash.remote import Post
from tests.crash.rows.c04_restart import EVERY_S, SUBMITTERS, USABLE_S, restart, submit
from tests.crash.stage import Stage, given_up

FAULTS, JOBS = 4, 1200
WORKERS = 2


async def play(stage: Stage) -> None:
    restarts = stage.count(FAULTS, 2)
    post = Post(stage)
    try:
        await post.open(WORKERS)
        async with stage.client() as client:
            each = math.ceil(stage.count(JOBS) / SUBMITTERS)
            load = asyncio.gather(
                *(submit(stage, client, i, each, restarts * EVERY_S) for i in range(SUBMITTERS))
            )
            usable = []
            try:
                for _ in range(restarts):
                    await asyncio.sleep(EVERY_S / 2)
                    usable.append(await restart(stage, client))
                    await asyncio.sleep(EVERY_S / 2)
                await load
            finally:
                await given_up(load)
            await stage.drain()
        stage.result.must(
            f"submits and handlers go on ≤ {USABLE_S:g} s after PostgreSQL is up",
            ", ".join(f"{seconds:.2f}" for seconds in usable),
            held=max(usable) <= USABLE_S,
        )
        processes = [one.process for one in post.workers] + [one.process for one in post.replicas]
        gone = [one for one in processes if one.poll() is not None]
        stage.result.must("replicas and workers that exited", len(gone), held=not gone)
    finally:
        await stage.stop_workers()
        post.close()


def look(stage: Stage) -> None:
    lost = stage.result.acked_lost
    acked = sum(event.more["phase"] == "ok" for event in stage.history.of("submit"))
    stage.result.must("acknowledged submits lost", f"{lost} of {acked}", held=lost == 0)
    failed = [job for job in stage.final.jobs.values() if job.status == "failed"]
    stage.result.must("jobs failed by it", len(failed), held=not failed)
