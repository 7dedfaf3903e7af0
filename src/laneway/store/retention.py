"""What the leader removes, ends and gives back, as statements; each asks whether it still leads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from laneway.store.statement import Row, Statement, scalar

SCAN: Final = 5000
BATCH: Final = 500
EXPIRE_BATCH: Final = 200
PRUNE_BATCH: Final = 1000
_NEWEST: Final = 2**63 - 1


class LeaderTerm(NamedTuple):
    """Who leads, and since which change of leaders."""

    holder: UUID
    epoch: int


@dataclass(frozen=True, slots=True)
class WalkPosition:
    """Where a walk over ended jobs stands, from the newest down: before which number, and how many
    it has met of each type that keeps a count."""

    before: int = _NEWEST
    met: dict[str, int] = field(default_factory=dict)


class WalkStep(NamedTuple):
    """What a step of the walk removed; `place` None: the walk is over."""

    removed: int
    place: WalkPosition | None


def _step(rows: list[Row]) -> WalkStep | None:
    removed, before, types, counts = rows[0]
    if removed is None:
        return None
    if before is None:
        return WalkStep(removed, None)
    return WalkStep(removed, WalkPosition(before, dict(zip(types, counts, strict=True))))


def remove_ended(
    mandate: LeaderTerm, place: WalkPosition, *, scan: int = SCAN, limit: int = BATCH
) -> Statement[WalkStep | None]:
    """One step of the walk; None: somebody else leads."""
    return Statement(
        "retention/remove_ended",
        _step,
        {
            **mandate._asdict(),
            "before": place.before,
            "types": list(place.met),
            "counts": list(place.met.values()),
            "scan": scan,
            "limit": limit,
        },
    )


class Overaged(NamedTuple):
    """Jobs ended for their age (None: somebody else leads), the types of those that got a key by
    it, and whether there is more."""

    ended: int | None
    job_types: list[str] | None
    more: bool


def expire_overaged(mandate: LeaderTerm, limit: int = EXPIRE_BATCH) -> Statement[Overaged]:
    """Ends jobs older than their type's max_age, waiting or running."""
    return Statement(
        "retention/expire_overaged",
        lambda rows: Overaged(*rows[0]),
        {**mandate._asdict(), "limit": limit},
    )


def _count(rows: list[Row]) -> int:
    return int(scalar(rows) or 0)


def expire_approvals(mandate: LeaderTerm, limit: int = EXPIRE_BATCH) -> Statement[int]:
    """Cancels jobs whose approval did not come in time."""
    return Statement("retention/expire_approvals", _count, {**mandate._asdict(), "limit": limit})


def fold_finished(mandate: LeaderTerm, limit: int = EXPIRE_BATCH) -> Statement[int]:
    """Gives back slots, limits and keys of jobs that ended in a transaction of their handler."""
    return Statement("retention/fold_finished", _count, {**mandate._asdict(), "limit": limit})


def sweep_keys(mandate: LeaderTerm) -> Statement[int]:
    """Mends keys that are stuck."""
    return Statement("retention/sweep_keys", _count, mandate._asdict())


def recount_usage(mandate: LeaderTerm) -> Statement[int]:
    """Mends counters of slots and limits; answers how many differed from the leases."""
    return Statement("retention/recount_usage", _count, mandate._asdict())


def prune_records(mandate: LeaderTerm, limit: int = PRUNE_BATCH) -> Statement[int]:
    """Forgets old slots of schedules, control changes, sessions, links and answered requests."""
    return Statement("retention/prune_records", _count, {**mandate._asdict(), "limit": limit})


def prune_events(mandate: LeaderTerm, keep_s: float, limit: int = PRUNE_BATCH) -> Statement[int]:
    """Forgets events that could be read for so long, and watches that nobody prolongs."""
    params = {**mandate._asdict(), "keep_s": keep_s, "limit": limit}
    return Statement("retention/prune_events", _count, params)
