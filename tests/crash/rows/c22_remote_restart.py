"""C22: PostgreSQL is stopped in immediate mode and restarted under replicas and remote workers."""

from __future__ import annotations

import asyncio
import math

from tests.crash.remote import RemoteFleet
from tests.crash.row_run import RowRun, cancel_load
from tests.crash.rows.c04_restart import EVERY_S, SUBMITTERS, USABLE_S, restart, submit

FAULTS, JOBS = 4, 1200
WORKERS = 2


async def inject(run: RowRun) -> None:
    restarts = run.count(FAULTS, 2)
    fleet = RemoteFleet(run)
    try:
        await fleet.open(WORKERS)
        async with run.client() as client:
            each = math.ceil(run.count(JOBS) / SUBMITTERS)
            load = asyncio.gather(
                *(submit(run, client, i, each, restarts * EVERY_S) for i in range(SUBMITTERS))
            )
            usable = []
            try:
                for _ in range(restarts):
                    await asyncio.sleep(EVERY_S / 2)
                    usable.append(await restart(run, client))
                    await asyncio.sleep(EVERY_S / 2)
                await load
            finally:
                await cancel_load(load)
            await run.drain()
        run.result.must(
            f"submits and handlers go on ≤ {USABLE_S:g} s after PostgreSQL is up",
            ", ".join(f"{seconds:.2f}" for seconds in usable),
            held=max(usable) <= USABLE_S,
        )
        processes = [one.process for one in fleet.workers] + [one.process for one in fleet.replicas]
        gone = [one for one in processes if one.poll() is not None]
        run.result.must("replicas and workers that exited", len(gone), held=not gone)
    finally:
        await run.stop_workers()
        fleet.close()


def check(run: RowRun) -> None:
    lost = run.result.acked_lost
    acked = sum(event.more["phase"] == "ok" for event in run.history.of("submit"))
    run.result.must("acknowledged submits lost", f"{lost} of {acked}", held=lost == 0)
    failed = [job for job in run.final.jobs.values() if job.status == "failed"]
    run.result.must("jobs failed by it", len(failed), held=not failed)
