"""C4: PostgreSQL, which waits for its disk, is stopped at once and started again, under load."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import Any

from laneway import Laneway
from tests.crash.stage import Stage, Stuck, given_up, until
from tests.crash.worker_logs import most_lines_per_second

FAULTS, JOBS = 5, 2000
EVERY_S = 2.5
SUBMITTERS = 4
USABLE_S = 3.0


async def play(stage: Stage) -> None:
    restarts = stage.count(FAULTS, 2)
    workers = [stage.start_worker() for _ in range(3)]
    await stage.ready(*workers)
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
    gone = [worker for worker in workers if not worker.is_alive]
    stage.result.must("worker processes that exited", len(gone), held=not gone)
    most = max(most_lines_per_second(worker.log) for worker in workers)
    stage.result.must("complaints per second and cause ≤ 1", most, held=most <= 1)


async def submit(stage: Stage, client: Laneway, number: int, total: int, seconds: float) -> None:
    """One job after the other, by key: unknown answers are asked again until they are known."""
    began = time.monotonic()
    for i in range(total):
        key = f"restart-{number}-{i}"
        await _until_known(stage, client, {"unique_key": key}, stage.load_random.randint(1, 80))
        await asyncio.sleep(max(0.0, began + seconds * i / total - time.monotonic()))


async def _until_known(stage: Stage, client: Laneway, options: dict[str, Any], ms: int) -> str:
    """The id of a job, submitted until a submit is answered."""
    while True:
        ids = await stage.submit(client, stage.job("quick", options, ms=ms))
        if ids:
            return ids[0]
        await asyncio.sleep(0.05)


async def restart(stage: Stage, client: Laneway) -> float:
    """Seconds from PostgreSQL's return to the start of a job that was submitted after it."""
    stage.conn.close()
    await asyncio.to_thread(stage.postgres.restart, "immediate")
    stage.fault(kind="restart")
    up = stage.last_fault
    job = await _until_known(stage, client, {}, 1)

    def goes_on() -> bool:
        return any(event.job == job for event in stage.handlers().of("start"))

    with contextlib.suppress(Stuck):
        await until(goes_on, 10, "a new job starts")
    return time.monotonic() - up


def look(stage: Stage) -> None:
    lost = stage.result.acked_lost
    acked = sum(event.more["phase"] == "ok" for event in stage.history.of("submit"))
    unknown = sum(event.more["phase"] == "info" for event in stage.history.of("submit"))
    stage.result.must(
        "acknowledged submits lost", f"{lost} of {acked} ({unknown} unknown)", held=lost == 0
    )
