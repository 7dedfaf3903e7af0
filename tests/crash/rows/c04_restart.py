"""C4: a durable PostgreSQL is stopped in immediate mode and restarted, under load."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import Any

from laneway import Laneway
from tests.crash.row_run import RowRun, Stuck, cancel_load, wait_until
from tests.crash.worker_logs import most_lines_per_second

FAULTS, JOBS = 5, 2000
EVERY_S = 2.5
SUBMITTERS = 4
USABLE_S = 3.0


async def inject(run: RowRun) -> None:
    restarts = run.count(FAULTS, 2)
    workers = [run.start_worker() for _ in range(3)]
    await run.ready(*workers)
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
    gone = [worker for worker in workers if not worker.is_alive]
    run.result.must("worker processes that exited", len(gone), held=not gone)
    most = max(most_lines_per_second(worker.log) for worker in workers)
    run.result.must("complaints per second and cause ≤ 1", most, held=most <= 1)


async def submit(run: RowRun, client: Laneway, number: int, total: int, seconds: float) -> None:
    """Submit jobs one by one with a key: an unknown result is retried until it is known."""
    began = time.monotonic()
    for i in range(total):
        key = f"restart-{number}-{i}"
        await _until_known(run, client, {"unique_key": key}, run.load_random.randint(1, 80))
        await asyncio.sleep(max(0.0, began + seconds * i / total - time.monotonic()))


async def _until_known(run: RowRun, client: Laneway, options: dict[str, Any], ms: int) -> str:
    """Submit a job until a submit succeeds; return its id."""
    while True:
        ids = await run.submit(client, run.job("quick", options, ms=ms))
        if ids:
            return ids[0]
        await asyncio.sleep(0.05)


async def restart(run: RowRun, client: Laneway) -> float:
    """Seconds from PostgreSQL's return to the start of a job that was submitted after it."""
    run.conn.close()
    await asyncio.to_thread(run.postgres.restart, "immediate")
    run.fault(kind="restart")
    up = run.last_fault
    job = await _until_known(run, client, {}, 1)

    def goes_on() -> bool:
        return any(event.job == job for event in run.handlers().of("start"))

    with contextlib.suppress(Stuck):
        await wait_until(goes_on, 10, "a new job starts")
    return time.monotonic() - up


def check(run: RowRun) -> None:
    lost = run.result.acked_lost
    acked = sum(event.more["phase"] == "ok" for event in run.history.of("submit"))
    unknown = sum(event.more["phase"] == "info" for event in run.history.of("submit"))
    run.result.must(
        "acknowledged submits lost", f"{lost} of {acked} ({unknown} unknown)", held=lost == 0
    )
