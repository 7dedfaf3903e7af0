"""Count the work of a worker with many lanes and job types, and the bytes of a job.

`python -m bench.sizes`. Transactions and pages are counted by PostgreSQL, so a slow or busy machine
changes little; only the polls per second suffer on one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psycopg

from laneway import Context, JobHandle, Lane, Laneway
from laneway.testing import open_scratch_database

# Lanes and job types of each run.
SHAPES = ((1, 1), (10, 100), (1, 1000), (100, 1000), (1000, 10_000))
JOBS = 3000
STORED = 30_000
# A backend reports its last work only after ten idle seconds.
SETTLE_S = 12.0
BATCH = 1000

_COUNTS = """select xact_commit, blks_hit + blks_read
  from pg_stat_database where datname = current_database()"""
_BYTES = """select sum(pg_total_relation_size(c.oid))::bigint
  from pg_class c where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'r'"""
_ENDED = "select count(*) from laneway.jobs_view where status = 'completed'"


@dataclass(frozen=True)
class Counts:
    """Transactions and pages since the database was created."""

    transactions: int
    pages: int


def read_counts(dsn: str) -> Counts:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select pg_stat_force_next_flush()")
        row = conn.execute(_COUNTS).fetchone()
    return Counts(*row) if row else Counts(0, 0)


def read_number(dsn: str, query: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


def application(dsn: str, lanes: int, types: int) -> Laneway:
    lw = Laneway(dsn, lanes=[Lane(f"lane-{n}", max_slots=None) for n in range(lanes)])

    async def run(ctx: Context, n: int, text: str = "") -> int:
        return n

    for n in range(types):
        lw.handler(f"type-{n}", lane=f"lane-{n % lanes}")(run)
    return lw


async def submit(lw: Laneway, types: int, jobs: int) -> list[JobHandle]:
    handles: list[JobHandle] = []
    for first in range(0, jobs, BATCH):
        numbers = range(first, min(first + BATCH, jobs))
        new = [(f"type-{n % types}", {"n": n, "text": "x" * 30}) for n in numbers]
        handles += await lw.submit_many(new)
    return handles


async def wait_for_some(handles: list[JobHandle]) -> None:
    """Wait for every hundredth job and the last one: each wait reads pages too."""
    for handle in [*handles[::100], handles[-1]]:
        await handle.wait(timeout=600)


async def count_work(dsn: str, lanes: int, types: int) -> None:
    lw = application(dsn, lanes, types)
    async with lw, lw.worker():
        await asyncio.sleep(SETTLE_S)
        before, began = read_counts(dsn), time.monotonic()
        await asyncio.sleep(SETTLE_S)
        idle, idle_s = read_counts(dsn), time.monotonic() - began
        began = time.monotonic()
        await wait_for_some(await submit(lw, types, JOBS))
        await asyncio.sleep(SETTLE_S)
        after, busy_s = read_counts(dsn), time.monotonic() - began
    ended = read_number(dsn, _ENDED)
    if ended != JOBS:
        raise RuntimeError(f"{ended} of {JOBS} jobs have ended")
    per_s = (idle.transactions - before.transactions) / idle_s
    pages_per_s = (idle.pages - before.pages) / idle_s
    pages = (after.pages - idle.pages - pages_per_s * busy_s) / JOBS
    print(
        f"{lanes:5} lanes {types:6} types: {per_s:5.1f} transactions/s idle, {pages:5.0f} pages/job"
    )


async def count_bytes(dsn: str) -> None:
    lw = application(dsn, 1, 1)
    empty = read_number(dsn, _BYTES)
    async with lw:
        handles = await submit(lw, 1, STORED)
        waiting = read_number(dsn, _BYTES)
        async with lw.worker():
            await wait_for_some(handles)
            await asyncio.sleep(SETTLE_S)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("vacuum")
    ended = read_number(dsn, _BYTES)
    for name, size in (("waiting", waiting), ("ended", ended)):
        print(f"{(size - empty) / STORED:.0f} bytes per {name} job")


def main(shapes: Iterable[tuple[int, int]] = SHAPES) -> None:
    for lanes, types in shapes:
        with open_scratch_database() as database:
            asyncio.run(count_work(database.dsn, lanes, types))
    with open_scratch_database() as database:
        asyncio.run(count_bytes(database.dsn))


if __name__ == "__main__":
    main()
