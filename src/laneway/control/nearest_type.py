"""The published job type that a mistyped one probably means."""

from __future__ import annotations

from collections.abc import Sequence

from laneway.domain.explanation import Reason
from laneway.domain.suggestion import suggest
from laneway.store.database import Database
from laneway.store.lanes import read as read_lanes
from laneway.store.workers import published_names


async def with_nearest_type(
    db: Database, reasons: Sequence[Reason], job_type: str, lanes: frozenset[str] | None
) -> list[Reason]:
    """The reasons; that of an unpublished type names the nearest one in the lanes (None: any)."""
    names = await db.run(published_names())
    if lanes is not None:
        state = await db.run(read_lanes())
        names = [each for each in names if state.lane_of(each) in lanes]
    near = suggest(job_type, names)
    return [
        Reason(each.code, each.message + near) if each.code == "type_unpublished" else each
        for each in reasons
    ]
