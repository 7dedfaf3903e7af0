"""The lane `system`: housekeeping of the platform."""

from __future__ import annotations

from laneway import Approval, Context

from .app import change, connect, lw
from .ingestion import add_source
from .provider import Provider


@lw.handler("restore", lane="system", approval=Approval(two_person=True), max_retries=0)
async def restore(ctx: Context, document: str, chunks: list[str]) -> int:
    """Replace a document by the chunks of a backup, all or nothing."""
    provider: Provider = ctx.resources.provider
    async with await connect() as conn:
        await conn.execute("delete from kg.source where document = %s", [document])
        for number, text in enumerate(chunks):
            concepts = await provider.extract_concepts(text)
            await add_source(conn, document, number, text, concepts)
            await ctx.progress(number + 1, len(chunks))
        await ctx.finish(conn=conn, result=len(chunks))
    return len(chunks)


@lw.handler("vocab_consolidate", lane="system")
async def consolidate(ctx: Context) -> int:
    """Drop plurals whose singular exists; their mentions move there."""
    return await change(
        ctx,
        "with moved as (insert into kg.mention select s.name, m.document, m.chunk from kg.mention m"
        " join kg.concept s on m.concept = s.name || 's' on conflict do nothing)"
        " delete from kg.concept p using kg.concept s where p.name = s.name || 's'",
    )


@lw.handler("artifact_cleanup", lane="system")
async def clean_up(ctx: Context, days: int = 30) -> int:
    """Delete proposals that were executed long ago."""
    return await change(
        ctx,
        "delete from kg.proposal where executed_at < now() - make_interval(days => %s)",
        days,
    )


@lw.handler("source_embedding", lane="system", limits=["ollama"])
async def embed_sources(ctx: Context, batch: int = 100) -> int:
    """Embed sources that have no embedding yet."""
    provider: Provider = ctx.resources.provider
    async with await connect() as conn:
        found = await conn.execute(
            "select document, chunk, content from kg.source where embedding is null limit %s",
            [batch],
        )
        rows = await found.fetchall()
        for document, chunk, content in rows:
            await conn.execute(
                "update kg.source set embedding = %s where document = %s and chunk = %s",
                [await provider.embed(str(content)), document, chunk],
            )
            await ctx.progress(message=str(document))
    return len(rows)
