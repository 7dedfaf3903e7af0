"""The sample application. `laneway worker laneway.demo.app:lw` serves it.

Its job types use the lanes that every database starts with: `interactive`, `maintenance` and
`system` name some of them, `default` takes the rest.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from laneway import Context, Laneway, RetryPolicy, SyncContext

lw = Laneway()


@lw.handler("ingestion", lane="interactive", priority=10)
async def ingest(ctx: Context, path: str, pages: int = 5) -> dict[str, Any]:
    """A quick job that a user waits for: long jobs in other lanes never delay it."""
    async for _page in ctx.track(range(pages)):
        await asyncio.sleep(0.12)
    return {"path": path, "pages": pages}


@lw.handler("thumbnail")
def make_thumbnail(ctx: SyncContext, image: str) -> str:
    """A plain function, which runs in a thread."""
    time.sleep(0.25)
    return f"{image}.small"


@lw.handler("projection", lane="maintenance")
async def project(ctx: Context, points: int = 120) -> int:
    """A long job that reports its progress."""
    for done in range(1, points + 1):
        await asyncio.sleep(0.06)
        await ctx.progress(done, points, stage="place" if done < points / 2 else "refine")
    return points


@lw.handler("sync_calendar", retry=RetryPolicy(base=1.0, jitter=0.0))
async def sync_calendar(ctx: Context, account: str) -> str:
    """Fails twice, as a network might; the third attempt succeeds."""
    if ctx.attempt < 3:
        raise ConnectionError("the server does not respond")
    return f"{account} is up to date"


@lw.handler("restore", lane="system", max_retries=10, retry=RetryPolicy(base=0.5, cap=0.5))
async def restore(ctx: Context, backup: str, tables: int = 100) -> dict[str, Any]:
    """Continues where the last attempt stopped, however it ended."""
    reached: list[int] = []
    # durable: each table is saved before the next begins, so that none is restored twice.
    async for table in ctx.track(range(1, tables + 1), durable=True):
        if not reached:
            ctx.log(f"started with table {table} of {tables}")
        await asyncio.sleep(0.05)
        reached.append(table)
    return {"backup": backup, "tables": tables, "first": reached[0], "count": len(reached)}


@lw.handler("count_primes", isolation="process")
def count_primes(ctx: SyncContext, below: int) -> int:
    """A heavy job: in a separate process it slows down no other job, and may crash."""
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for number in range(2, int(below**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, below, number)))
    ctx.progress(below, below)
    return sum(sieve)


@lw.handler("runaway", isolation="process", max_retries=0)
def run_away(ctx: SyncContext) -> None:
    """Never ends and never checks for cancellation: only killing its process stops it."""
    while True:
        time.sleep(1)
