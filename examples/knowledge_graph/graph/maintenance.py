"""The lane `maintenance`: one job at a time, in the background."""

from __future__ import annotations

import random

import psycopg

from laneway import Context, SyncContext

from .app import change, connect, lw
from .provider import Provider


@lw.handler("projection", lane="maintenance", isolation="process", stale="progress")
def project(ctx: SyncContext, iterations: int = 50) -> int:
    """Place concepts of one source near each other: a small stand-in for t-SNE.

    It computes, so it has a process for itself. Each iteration is a point where it can be
    cancelled; a process that does not reach one in time is killed.
    """
    with psycopg.connect(lw.database.dsn) as conn:
        names = [name for (name,) in conn.execute("select name from kg.concept order by name")]
        pairs = conn.execute(
            "select a.concept, b.concept from kg.mention a"
            " join kg.mention b using (document, chunk) where a.concept < b.concept"
        ).fetchall()
    rng = random.Random(0)
    places = {name: [rng.random(), rng.random()] for name in names}
    for iteration in range(iterations):
        ctx.progress(iteration, iterations, "projecting")
        for a, b in pairs:
            for axis in (0, 1):
                middle = (places[a][axis] + places[b][axis]) / 2
                places[a][axis] += 0.1 * (middle - places[a][axis])
                places[b][axis] += 0.1 * (middle - places[b][axis])
    with psycopg.connect(lw.database.dsn) as conn, conn.cursor() as cursor:
        cursor.executemany(
            "update kg.concept set place = %s where name = %s",
            [[place, name] for name, place in places.items()],
        )
    return len(places)


@lw.handler("vocab_refresh", lane="maintenance", limits=["ollama"])
async def refresh_vocabulary(ctx: Context) -> int:
    """Embed new concepts; the local model takes one call at a time, in the whole cluster."""
    provider: Provider = ctx.resources.provider
    async with await connect() as conn:
        found = await conn.execute("select name from kg.concept where embedding is null")
        names = [str(name) for (name,) in await found.fetchall()]
    for done, name in enumerate(names, 1):  # not ctx.track: a retry selects what is left
        vector = await provider.embed(name)
        async with await connect() as conn:
            await conn.execute(
                "update kg.concept set embedding = %s where name = %s", [vector, name]
            )
        await ctx.progress(done, len(names), name)
    return len(names)


@lw.handler("epistemic_remeasurement", lane="maintenance")
async def remeasure(ctx: Context) -> int:
    """Count the documents that support each concept."""
    return await change(
        ctx,
        "update kg.concept c set support = m.documents from"
        " (select concept, count(distinct document) as documents from kg.mention group by 1) m"
        " where m.concept = c.name and m.documents <> c.support",
    )


@lw.handler("ontology_annealing", lane="maintenance")
async def anneal(ctx: Context, least_support: int = 2) -> int:
    """Propose to drop concepts with little support; nothing is dropped here."""
    return await change(
        ctx,
        "insert into kg.proposal (drops) select name from kg.concept where support < %s"
        " on conflict (drops) do nothing",
        least_support,
    )


@lw.handler("proposal_execution", lane="maintenance", approval=True)
async def execute_proposal(ctx: Context, proposal: int) -> int:
    """Drop the concept of a proposal, once a person has approved it."""
    return await change(
        ctx,
        "with done as (update kg.proposal set executed_at = now()"
        " where id = %s and executed_at is null returning drops)"
        " delete from kg.concept using done where name = drops",
        proposal,
    )
