"""Floors: the seq at which the live rows of a job type begin, so that claims skip dead entries.

While an old snapshot pins dead rows, a scan from the head of the index visits every job ever
claimed. A floor per job type and rank skips them. A floor rises past a seq only when no job below
it can appear any more.

A claim misses a job below its highest seq only if a transaction hides that job. The transaction has
not committed the job (it draws the seq after it has its xid), or it locks the row. Its xid is lower
than the xid of the next claim, which starts after this claim ends. So the floor rises to that seq
after a claim that starts when all those xids have ended, and that finds nothing lower.

An unrelated transaction that stays open delays this. After a while the claimer therefore asks which
transactions can hide jobs at all.

Two cases remain: a row that two transactions roll back in turn at the wrong moments, and a database
restored to an earlier state. `floor_check.py` looks below the floors for them, apart from the
claims, because that scan visits all dead rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from laneway.store.leases import MAX_RANK, MIN_RANK, ClaimAnswer, Range

MAX_LEVELS = 16
MAX_PENDING = 64
# After this many claims without a rise, an open transaction must be delaying the floor.
HELD_UP = 8


@dataclass(slots=True)
class _Level:
    floor: int = 0
    # The highest seq of each claim, with the xid of the next claim once there is one.
    pending: deque[tuple[int, int | None]] = field(default_factory=deque)


class Floors:
    """The floors of the job types of one claimer."""

    def __init__(self) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._recent: set[str] = set()
        self._horizon = self._newest_xid = 0

    def forget(self) -> None:
        """Scan from the start again."""
        self._levels.clear()
        self._recent.clear()
        self._horizon = 0

    def forget_types(self, job_types: Iterable[str]) -> None:
        """Scan from the start again for these job types."""
        for job_type in job_types:
            self._levels.pop(job_type, None)

    def forget_recent(self) -> None:
        """Restart the count of busy job types."""
        self._recent.clear()

    @property
    def busy(self) -> int | None:
        """The number of job types that recently had fresh jobs; None if unknown."""
        return len(self._recent) or None

    @property
    def are_held_up(self) -> bool:
        """Whether an open transaction keeps a floor from rising."""
        return any(
            len(level.pending) > HELD_UP
            for levels in self._levels.values()
            for level in levels.values()
        )

    def look_past(self, horizon_xid: int) -> None:
        """From the next claim on, assume that transactions below this xid hide nothing."""
        self._horizon = max(self._horizon, horizon_xid)

    @property
    def job_types(self) -> set[str]:
        """The job types that have a floor."""
        return {job_type for job_type, _, _ in self.heights()}

    def heights(self) -> list[tuple[str, int, int]]:
        """Every floor as job type, rank and seq."""
        return [
            (job_type, rank, level.floor)
            for job_type, levels in self._levels.items()
            for rank, level in levels.items()
            if level.floor
        ]

    def ranges(self, job_type: str, group: int) -> list[Range]:
        """The index ranges to scan: returned rows, then fresh rows from their floors."""
        ranges = [Range(job_type, group, False, MIN_RANK, 0, MAX_RANK)]
        lo, floor = MIN_RANK, 0
        for rank, level in sorted(self._levels.get(job_type, {}).items()):
            ranges.append(Range(job_type, group, True, lo, floor, rank - 1))
            lo, floor = rank, level.floor
        ranges.append(Range(job_type, group, True, lo, floor, MAX_RANK))
        return ranges

    def learn(self, answer: ClaimAnswer) -> None:
        """Raise floors as far as the answer of a claim allows."""
        if answer.own_xid < self._newest_xid:
            # An xid only grows: this is another database, or an earlier state of it.
            self.forget()
        self._newest_xid = answer.own_xid
        horizon = max(self._horizon, answer.horizon_xid)
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        for (seq, _, _), rank, job_type, _, _, _, fresh, *_ in answer.assignments:
            if fresh:
                # Assignments come in order of seq.
                low, _ = seen.get((job_type, rank), (seq, seq))
                seen[job_type, rank] = low, seq
        for (job_type, rank), (low, top) in seen.items():
            self._recent.add(job_type)
            levels = self._levels.setdefault(job_type, {})
            if rank not in levels and len(levels) >= MAX_LEVELS:
                levels.clear()
            level = levels.setdefault(rank, _Level())
            if level.pending and level.pending[-1][1] is None:
                last_top, _ = level.pending.pop()
                level.pending.append((last_top, answer.own_xid))
            while level.pending and (level.pending[0][1] or 0) < horizon:
                earlier_top, _ = level.pending.popleft()
                level.floor = max(level.floor, min(earlier_top, low - 1))
            if len(level.pending) >= MAX_PENDING:
                level.pending = deque(list(level.pending)[1::2])
            level.pending.append((top, None))


def all_ranges(floors: Floors, types: Iterable[tuple[str, int]]) -> list[Range]:
    """The ranges of several (job type, group) pairs."""
    return [one for job_type, group in types for one in floors.ranges(job_type, group)]
