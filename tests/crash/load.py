"""A mixed load: all kinds of handlers; retried, snoozed, delayed, keyed and cancelled jobs."""

from __future__ import annotations

import asyncio
import math
import time

from laneway import Laneway
from tests.crash.row_run import Job, RowRun

KEYS = 12


def mixed(run: RowRun) -> Job:
    """One job of the mix."""
    rand = run.load_random
    pick = rand.random()
    priority = {"priority": rand.choice([-5, 0, 0, 0, 10])}
    if pick < 0.55:
        return run.job("quick", priority, ms=rand.randint(1, 60))
    if pick < 0.65:
        return run.job("blocking", priority, ms=rand.randint(5, 60))
    if pick < 0.75:
        return run.job("narrow", ms=rand.randint(1, 15))
    if pick < 0.81:
        return run.job("tracked", items=8, ms=60)
    if pick < 0.86:
        return run.job("flaky", ms=rand.randint(1, 30))
    if pick < 0.90:
        return run.job("fragile", ms=rand.randint(400, 1200))
    if pick < 0.93:
        return run.job("snoozing")
    if pick < 0.96:
        return run.job("quick", {"delay": rand.uniform(0.1, 1.0)}, ms=5)
    if pick < 0.99:
        key = {"unique_key": f"key-{rand.randrange(KEYS)}"}
        return run.job("quick", key, ms=rand.randint(20, 200))
    return run.job("isolated", ms=rand.randint(1, 40))


async def feed(run: RowRun, client: Laneway, total: int, faults: int, every_s: float) -> None:
    """Submit the mix in step with the faults, mostly by COPY, every tenth job alone.

    Duplicates and unknown results do not count: it continues until `total` jobs are acknowledged.
    """
    made: set[str] = set()

    def is_ahead() -> bool:
        # Stay behind the next fault, so that a late fault finds work too.
        since = (time.monotonic() - run.last_fault) / every_s
        return len(made) / total > (run.result.faults + 1 - math.exp(-since)) / faults

    run.last_fault = time.monotonic()
    while len(made) < total:
        size = min(run.load_random.randint(10, 40), total - len(made))
        alone = size // 10
        made.update(await run.submit(client, *(mixed(run) for _ in range(size - alone))))
        for _ in range(alone):
            made.update(await run.submit(client, mixed(run)))
        while is_ahead():  # noqa: ASYNC110 - the faults set the pace
            await asyncio.sleep(0.02)


async def cancel_some(run: RowRun, client: Laneway, total: int, seconds: float) -> None:
    """Cancel jobs that would never end: half while they wait, half while they run."""
    for i in range(total):
        options = {"delay": 60.0} if i % 2 else {}
        ids = await run.submit(client, run.job("endless", options))
        await asyncio.sleep(seconds / total)
        for job in ids:
            await _cancel(run, client, job)


async def _cancel(run: RowRun, client: Laneway, job: str) -> None:
    """Repeat a cancel whose result was lost, as a person would."""
    for _ in range(50):
        if await run.cancel(client, job):
            return
        await asyncio.sleep(0.1)
