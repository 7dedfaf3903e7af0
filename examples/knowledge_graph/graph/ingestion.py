"""The lane `interactive`: work that a person waits for."""

from __future__ import annotations

from laneway import Analysis, Approval, Context, RetryPolicy

from .app import Conn, connect, lw
from .provider import Provider, ProviderBusy

CHUNK_WORDS = 20
PRICE = 0.002  # dollars a chunk


def split(text: str) -> list[str]:
    """Chunks of a fixed number of words: the same text always gives the same chunks."""
    words = text.split()
    return [" ".join(words[at : at + CHUNK_WORDS]) for at in range(0, len(words), CHUNK_WORDS)]


async def add_source(conn: Conn, document: str, chunk: int, text: str, concepts: list[str]) -> None:
    """Upsert a chunk and its concepts; a chunk that runs twice is stored once."""
    await conn.execute(
        "insert into kg.source (document, chunk, content) values (%s, %s, %s)"
        " on conflict (document, chunk) do update set content = excluded.content",
        [document, chunk, text],
    )
    async with conn.cursor() as cursor:
        await cursor.executemany(
            "insert into kg.concept (name) values (%s) on conflict do nothing",
            [[name] for name in concepts],
        )
        await cursor.executemany(
            "insert into kg.mention values (%s, %s, %s) on conflict do nothing",
            [[name, document, chunk] for name in concepts],
        )


@lw.handler(
    "ingestion",
    lane="interactive",
    priority=10,
    timeout=3600,
    # Up to a cent a document runs at once. Above that, another person decides.
    approval=Approval(below_cost=0.01, currency="USD", two_person=True),
)
async def ingest(ctx: Context, document: str, text: str) -> dict[str, int]:
    provider: Provider = ctx.resources.provider
    chunks = split(text)
    async for chunk in ctx.track(range(len(chunks)), durable=True):
        ctx.log(f"chunk {chunk} asks openai")
        async with ctx.limit("openai"):
            concepts = await ctx.retry(
                provider.extract_concepts,
                chunks[chunk],
                on=ProviderBusy,
                policy=RetryPolicy(base=0.2),
            )
        async with await connect() as conn:
            await ctx.guard(conn)  # a superseded attempt writes nothing
            await add_source(conn, document, chunk, chunks[chunk], concepts)
    return {"chunks": len(chunks)}


@ingest.analyze
async def plan_ingestion(document: str, text: str) -> Analysis:
    chunks = len(split(text))
    async with await connect() as conn:
        found = await conn.execute("select 1 from kg.source where document = %s", [document])
        is_known = await found.fetchone() is not None
    return Analysis(
        plan={"document": document, "chunks": chunks, "provider": "openai"},
        cost=round(chunks * PRICE, 4),
        currency="USD",
        warnings=[f"{document} is in the graph: its chunks are replaced"] if is_known else [],
    )


@lw.handler("ingest_image", lane="interactive", priority=10, limits=["anthropic"])
async def ingest_image(ctx: Context, document: str, url: str) -> str:
    provider: Provider = ctx.resources.provider
    text = await ctx.step("describe", provider.describe_image, url)  # paid once per job
    concepts = await provider.extract_concepts(text)
    async with await connect() as conn:
        await add_source(conn, document, 0, text, concepts)
        await ctx.finish(conn=conn, result=text)  # the rows and the completion, or neither
    return text


@lw.handler("polarity", lane="interactive", priority=10)
async def polarity(ctx: Context, positive: str, negative: str) -> float:
    """Compare how often two concepts are mentioned: from -1 to 1."""
    async with await connect() as conn:
        found = await conn.execute(
            "select count(*) filter (where concept = %s), count(*) filter (where concept = %s)"
            " from kg.mention",
            [positive, negative],
        )
        row = await found.fetchone()
    more, less = (int(str(count)) for count in row or (0, 0))
    return (more - less) / max(1, more + less)
