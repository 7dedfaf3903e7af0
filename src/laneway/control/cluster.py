"""The state of the whole cluster for metrics; cheap with a million waiting jobs."""

from __future__ import annotations

from dataclasses import dataclass

from laneway.control import lanes
from laneway.domain.overview import DEPTH_BOUND, LaneStatus, WorkerRow
from laneway.store import access, flows, health, workers
from laneway.store import lanes as lane_store
from laneway.store.database import Database
from laneway.store.flows import OpenWork
from laneway.store.health import Attention


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Lanes by name, worker processes seen within the hour, and lapsed leases."""

    is_paused: bool
    lanes: list[LaneStatus]
    workers: list[WorkerRow]
    lapsed: int
    oldest_transaction_s: float
    attention: Attention
    open_work: OpenWork
    expiring_tokens: int


async def survey(db: Database) -> ClusterState:
    """Read the current state in a few statements, whose cost is independent of waiting jobs."""
    oldest = await db.run(health.oldest_snapshot())
    expiring = await db.run(access.list_expiring_tokens(DEPTH_BOUND))
    return ClusterState(
        is_paused=(await db.run(lane_store.read_gate())).paused,
        lanes=await lanes.inspect(db),
        workers=await db.run(workers.listing()),
        lapsed=(await db.run(health.count_lapsed())).leases,
        oldest_transaction_s=0.0 if oldest is None else oldest.age_s,
        attention=await db.run(health.count_attention(bound=DEPTH_BOUND)),
        open_work=await db.run(flows.count_open(bound=DEPTH_BOUND)),
        expiring_tokens=len(expiring),
    )
