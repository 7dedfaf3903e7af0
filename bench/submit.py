"""`submit_many` next to a bare COPY of the same batches into the same tables."""

from __future__ import annotations

import asyncio
import time

import psycopg

from bench import load
from bench.app import NOOP
from bench.figures import Figures
from bench.load import Rows
from bench.scale import Scale, log
from bench.server import Database, Server
from laneway import Laneway

BATCH = 1000
_TEXT = "x" * 39


async def submit_many(database: Database, count: int) -> float:
    """Jobs per second of the public method, which checks, encodes, numbers and stores."""
    lw = Laneway(database.dsn)

    @lw.handler(NOOP)
    async def noop(ctx: object, text: str) -> None:
        """Registered so that the arguments are checked."""

    async with lw:
        batch = [(NOOP, {"text": _TEXT})] * BATCH
        await lw.submit_many(batch)
        began = time.perf_counter()
        for _ in range(count // BATCH):
            await lw.submit_many(batch)
        return count / (time.perf_counter() - began)


async def copy(database: Database, batches: list[Rows]) -> float:
    """Rows per second of COPY alone: rendered in advance, one transaction per batch."""
    conn = await psycopg.AsyncConnection.connect(database.dsn, autocommit=True)
    async with conn:
        await load.store_async(conn, batches[0])
        began = time.perf_counter()
        for rows in batches[1:]:
            await load.store_async(conn, rows)
        return BATCH * (len(batches) - 1) / (time.perf_counter() - began)


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_submit")
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(scale.runs):
        database.empty()
        batches = [load.render(database, BATCH) for _ in range(scale.submit // BATCH + 1)]
        database.vacuum_and_checkpoint()
        theirs.append(asyncio.run(copy(database, batches)))
        database.empty()
        database.vacuum_and_checkpoint()
        ours.append(asyncio.run(submit_many(database, scale.submit)))
        log(f"submit {turn + 1}: submit_many {ours[-1]:,.0f}/s, COPY {theirs[-1]:,.0f}/s")
    figures.ratio("submit_many_vs_copy", ours, theirs)
    server.drop(database)
