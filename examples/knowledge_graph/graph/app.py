"""The application: its lanes, its providers' limits, its tables and its schedules."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import LiteralString

import psycopg

from laneway import Context, Lane, Laneway, Limit

from .provider import FakeProvider

SCHEMA = Path(__file__).with_name("schema.sql")
CREATE_TABLES_LOCK = 100_000_001
Conn = psycopg.AsyncConnection[tuple[object, ...]]

# Created where the database has none of that name. From then on the database decides:
# `laneway lanes set interactive --max-slots 3` applies within one poll interval.
lw = Laneway(
    lanes=[
        Lane("interactive", max_slots=2, poll_interval_ms=2_000, stale_timeout_minutes=30),
        Lane("maintenance", max_slots=1, poll_interval_ms=15_000, stale_timeout_minutes=60),
        Lane("system", max_slots=1, poll_interval_ms=30_000, stale_timeout_minutes=120),
    ],
    limits=[
        Limit("openai", max_concurrent=8),
        Limit("anthropic", max_concurrent=4),
        Limit("ollama", max_concurrent=1),
    ],
)


async def connect() -> Conn:
    """A connection for `async with`: the block is a transaction."""
    return await psycopg.AsyncConnection.connect(lw.database.dsn)


@lw.on_start
async def prepare(resources: SimpleNamespace) -> None:
    """Create the tables, and the provider that handlers share in a process."""
    resources.provider = FakeProvider()
    async with await connect() as conn:
        await conn.execute("select pg_advisory_xact_lock(%s)", [CREATE_TABLES_LOCK])
        await conn.execute(SCHEMA.read_bytes())


async def change(ctx: Context, statement: LiteralString, *values: object) -> int:
    """Complete the job in the transaction of one statement; the result is its number of rows."""
    async with await connect() as conn:
        changed = await conn.execute(statement, values)
        await ctx.finish(conn=conn, result=changed.rowcount)
    return changed.rowcount


async def has_rows(query: LiteralString) -> bool:
    async with await connect() as conn:
        return await (await conn.execute(query)).fetchone() is not None


@lw.check("vocabulary_has_grown")
async def vocabulary_has_grown() -> bool:
    return await has_rows("select 1 from kg.concept where embedding is null limit 1")


@lw.check("sources_lack_embeddings")
async def sources_lack_embeddings() -> bool:
    return await has_rows("select 1 from kg.source where embedding is null limit 1")


# A schedule whose check is false submits no job; `laneway schedules slots NAME` shows it.
lw.schedule("vocab-refresh", "vocab_refresh", cron="0 */6 * * *", check="vocabulary_has_grown")
lw.schedule("embeddings", "source_embedding", cron="*/30 * * * *", check="sources_lack_embeddings")
lw.schedule("annealing", "ontology_annealing", cron="30 3 * * *")
lw.schedule("remeasurement", "epistemic_remeasurement", cron="0 5 * * SUN")
lw.schedule("cleanup", "artifact_cleanup", cron="0 4 * * *", payload={"days": 30})
