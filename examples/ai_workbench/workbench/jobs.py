"""The job: chunk a document, embed the chunks, upsert them. It resumes on any replica."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from uuid import UUID, uuid5

import psycopg

from laneway import Context, Lane, Laneway

from .embedder import Embedder, FakeEmbedder

SCHEMA = Path(__file__).with_name("schema.sql")
CREATE_TABLES_LOCK = 5_310_001
CHUNK_WORDS = 10

# A replica that dies loses its jobs five seconds later to another one.
lw = Laneway(lanes=[Lane("ingest", max_slots=8, poll_interval_ms=1_000, lease_seconds=5)])


async def connect() -> psycopg.AsyncConnection[tuple[object, ...]]:
    """A connection for `async with`: the block is a transaction."""
    return await psycopg.AsyncConnection.connect(lw.database.dsn)


@lw.on_start
async def prepare(resources: SimpleNamespace) -> None:
    """Create the tables, and the embedder that jobs share in a replica."""
    resources.embedder = FakeEmbedder()
    async with await connect() as conn:
        await conn.execute("select pg_advisory_xact_lock(%s)", [CREATE_TABLES_LOCK])
        await conn.execute(SCHEMA.read_bytes())


def split(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[at : at + CHUNK_WORDS]) for at in range(0, len(words), CHUNK_WORDS)]


def chunk_id(document: UUID, position: int) -> UUID:
    """The same chunk always has the same id, so storing it again changes nothing."""
    return uuid5(document, str(position))


@lw.handler("ingest", lane="ingest")
async def ingest(ctx: Context, document: UUID) -> dict[str, int]:
    """Ingest a stored document; the payload is only its id, so its size does not matter."""
    embedder: Embedder = ctx.resources.embedder
    async with await connect() as conn:
        found = await conn.execute(
            "select content from workbench.document where id = %s", [document]
        )
        row = await found.fetchone()
    chunks = split(str(row[0])) if row else []
    # After a crash, `track` continues with the first chunk whose completion was not stored.
    async for position in ctx.track(range(len(chunks)), durable=True):
        vector = await embedder.embed(chunks[position])
        async with await connect() as conn:
            await ctx.guard(conn)  # a replica that lost the job writes nothing
            await conn.execute(
                "insert into workbench.chunk values (%s, %s, %s, %s, %s, %s)"
                " on conflict (id) do update set content = excluded.content,"
                " embedding = excluded.embedding, attempt = excluded.attempt",
                [
                    *(chunk_id(document, position), document, position),
                    *(chunks[position], vector, ctx.attempt),
                ],
            )
    return {"chunks": len(chunks)}
