"""The published job type that a mistyped one probably means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from laneway.control import jobs
from laneway.domain.explanation import Reason
from laneway.domain.filter import JobFilter
from laneway.domain.permissions import Reach
from laneway.store.database import Database
from laneway.store.lanes import read as read_lanes
from laneway.store.workers import published_names

# Similar names that are looked at; each may take a search.
_LOOKED_AT: Final = 3


@dataclass(frozen=True, slots=True)
class SeenTypes:
    """The job types that a caller may learn of: all of the lanes, and those of the jobs.

    `lanes` is None for every lane.
    """

    lanes: frozenset[str] | None
    jobs: Reach


async def with_nearest_type(
    db: Database, reasons: Sequence[Reason], job_type: str, seen: SeenTypes | None
) -> list[Reason]:
    """The reasons; that of an unpublished type names the nearest one that is seen (None: any)."""
    names = await db.run(published_names())
    for near in get_close_matches(job_type, names, n=_LOOKED_AT):
        if seen is None or await _is_seen(db, near, seen):
            return [
                Reason(each.code, f"{each.message}; did you mean {near}?")
                if each.code == "type_unpublished"
                else each
                for each in reasons
            ]
    return [*reasons]


async def _is_seen(db: Database, job_type: str, seen: SeenTypes) -> bool:
    if seen.lanes is None or (await db.run(read_lanes())).lane_of(job_type) in seen.lanes:
        return True
    # Jobs of other workspaces would betray the names that are used there.
    found = await jobs.find(db, JobFilter(job_type=job_type, within=seen.jobs), limit=1)
    return bool(found.items)
