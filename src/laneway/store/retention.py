"""The leader's cleanup, as statements; each runs only while its caller is still the leader."""

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
    """The leader and the epoch of its term."""

    holder: UUID
    epoch: int


@dataclass(frozen=True, slots=True)
class WalkPosition:
    """The position of a walk over ended jobs, newest first.

    `before`: the next sequence number bound. `seen`: jobs seen so far of each type with a
    `keep_count`.
    """

    before: int = _NEWEST
    seen: dict[str, int] = field(default_factory=dict)


class WalkStep(NamedTuple):
    """The result of one step of the walk; `position` None: the walk is over."""

    removed: int
    position: WalkPosition | None


def _step(rows: list[Row]) -> WalkStep | None:
    removed, before, types, counts = rows[0]
    if removed is None:
        return None
    if before is None:
        return WalkStep(removed, None)
    return WalkStep(removed, WalkPosition(before, dict(zip(types, counts, strict=True))))


def delete_expired(
    term: LeaderTerm, position: WalkPosition, *, scan: int = SCAN, limit: int = BATCH
) -> Statement[WalkStep | None]:
    """Deletes expired jobs, one step of the walk; None: another process is the leader."""
    return Statement(
        "retention/delete_expired",
        _step,
        {
            **term._asdict(),
            "before": position.before,
            "types": list(position.seen),
            "counts": list(position.seen.values()),
            "scan": scan,
            "limit": limit,
        },
    )


class Overaged(NamedTuple):
    """The result of `expire_overaged`.

    `ended`: number of jobs ended (None: another process is the leader). `job_types`: types of
    jobs that got a key by it. `more`: whether more jobs are overaged.
    """

    ended: int | None
    job_types: list[str] | None
    more: bool


def expire_overaged(term: LeaderTerm, limit: int = EXPIRE_BATCH) -> Statement[Overaged]:
    """Fails jobs older than their type's max_age, waiting or running."""
    return Statement(
        "retention/expire_overaged",
        lambda rows: Overaged(*rows[0]),
        {**term._asdict(), "limit": limit},
    )


def _count(rows: list[Row]) -> int:
    return int(scalar(rows) or 0)


def expire_approvals(term: LeaderTerm, limit: int = EXPIRE_BATCH) -> Statement[int]:
    """Cancels jobs whose approval expired."""
    return Statement("retention/expire_approvals", _count, {**term._asdict(), "limit": limit})


def release_self_finished(term: LeaderTerm, limit: int = EXPIRE_BATCH) -> Statement[int]:
    """Releases slots, limits and keys of jobs finished in their handler's own transaction."""
    return Statement("retention/release_self_finished", _count, {**term._asdict(), "limit": limit})


def sweep_keys(term: LeaderTerm) -> Statement[int]:
    """Repairs stuck concurrency keys."""
    return Statement("retention/sweep_keys", _count, term._asdict())


def recount_usage(term: LeaderTerm) -> Statement[int]:
    """Corrects counters of slots and limits; returns how many differed from the leases."""
    return Statement("retention/recount_usage", _count, term._asdict())


def prune_records(term: LeaderTerm, limit: int = PRUNE_BATCH) -> Statement[int]:
    """Deletes old schedule slots, control changes, sessions, links and kept responses."""
    return Statement("retention/prune_records", _count, {**term._asdict(), "limit": limit})


def prune_events(term: LeaderTerm, keep_s: float, limit: int = PRUNE_BATCH) -> Statement[int]:
    """Deletes events older than `keep_s`, and expired watches."""
    params = {**term._asdict(), "keep_s": keep_s, "limit": limit}
    return Statement("retention/prune_events", _count, params)
