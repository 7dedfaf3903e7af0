"""Handlers that wait for an approval: a person sees the plan and its cost first."""

from __future__ import annotations

import asyncio
from typing import Any

from laneway import Analysis, Approval, Context
from laneway.demo.app import lw

SIZES = {"articles": 1_840_000, "invoices": 212_400, "manuals": 38_650}
USD_PER_MILLION = {"embed-small": 12.5, "embed-large": 81.0}


@lw.handler("rebuild_index", lane="maintenance", priority=20, approval=True)
async def rebuild_index(
    ctx: Context, collection: str, model: str = "embed-small", shards: int = 2
) -> dict[str, Any]:
    """Every rebuild needs an approval, because it costs money."""
    for shard in range(1, shards + 1):
        await asyncio.sleep(0.5)
        await ctx.progress(shard, shards, f"shard {shard}", stage="rebuild")
    return {"collection": collection, "model": model, "shards": shards}


@rebuild_index.analyze
def plan_rebuild(collection: str, model: str = "embed-small", shards: int = 2) -> Analysis:
    documents = SIZES.get(collection, 10_000)
    large = ["the old index needs twice its size on disk until the switch"]
    return Analysis(
        plan=[
            {"step": "create", "index": f"{collection}-next", "shards": shards},
            {"step": "embed", "documents": documents, "model": model},
            {"step": "switch", "alias": collection, "downtime_s": 0},
        ],
        cost=round(documents / 1e6 * USD_PER_MILLION.get(model, 40.0), 2),
        currency="USD",
        warnings=large if documents > 1_000_000 else [],
    )


@lw.handler("purge_collection", lane="maintenance", priority=20, approval=Approval(two_person=True))
async def purge_collection(ctx: Context, collection: str, older_than: str) -> dict[str, Any]:
    """Deletes documents: the submitter cannot approve it."""
    await asyncio.sleep(1.0)
    return {"collection": collection, "deleted": SIZES.get(collection, 0) // 3}


@purge_collection.analyze
def plan_purge(collection: str, older_than: str) -> Analysis:
    doomed = SIZES.get(collection, 0) // 3
    return Analysis(
        plan={"delete": doomed, "keep": SIZES.get(collection, 0) - doomed, "before": older_than},
        warnings=[f"{doomed:,} documents cannot be restored after 30 days"],
    )


@lw.handler(
    "vocab_refresh",
    lane="maintenance",
    approval=Approval(below_cost=5, currency="USD", expires=2 * 3600),
)
async def refresh_vocabulary(ctx: Context, terms: int) -> int:
    """Cheap refreshes run by policy; expensive ones ask."""
    await asyncio.sleep(0.5)
    return terms


@refresh_vocabulary.analyze
def plan_refresh(terms: int) -> Analysis:
    return Analysis(plan=f"compare {terms:,} terms", cost=terms / 1000 * 0.02, currency="USD")
