"""The overview: lanes and their slots, which job holds which slot, who is there, who leads."""

from __future__ import annotations

from laneway.control import lanes
from laneway.domain.overview import OldSnapshot, Overview
from laneway.store import health
from laneway.store import lanes as lane_store
from laneway.store import workers as worker_store
from laneway.store.database import Database


async def overview(db: Database, *, active_limit: int = 1000) -> Overview:
    """Lanes, active jobs (longest first within a lane), workers seen within the hour."""
    return Overview(
        await db.run(lane_store.read_gate()),
        await lanes.inspect(db),
        await db.run(lane_store.active(active_limit)),
        await db.run(worker_store.listing()),
    )


async def oldest_transaction(db: Database) -> OldSnapshot | None:
    """The transaction of somebody else that has pinned dead rows for longest."""
    return await db.run(health.oldest_snapshot())
