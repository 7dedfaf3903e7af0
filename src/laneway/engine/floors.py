"""Where the live rows of a job type begin, so that a claim need not walk over dead entries.

While an old snapshot pins dead rows, a scan from the head of the index meets every job ever
claimed. A floor per job type and rank skips them. It may only rise past a seq when no transaction
that could still commit a lower one is running: the claim that saw the top of a batch remembers its
own transaction id, and a later claim whose horizon is past that id, and which found nothing lower,
makes it the floor. Rows may still appear below (a killed claimer's, or a seq drawn before its
transaction had an id), so the owner forgets the floors now and then, and when a claim comes up
short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from laneway.store.leases import MAX_RANK, MIN_RANK, ClaimAnswer, Range

MOST_LEVELS = 16
MOST_PENDING = 64


@dataclass(slots=True)
class _Level:
    floor: int = 0
    pending: deque[tuple[int, int]] = field(default_factory=deque)


class Floors:
    """Floors of the job types one claimer looks at."""

    def __init__(self) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}

    def forget(self) -> None:
        """Looks from the start again."""
        self._levels.clear()

    @property
    def busy(self) -> int | None:
        """How many job types had fresh jobs since the last look from the start; None: not known."""
        return len(self._levels) or None

    @property
    def is_empty(self) -> bool:
        return not any(level.floor for levels in self._levels.values() for level in levels.values())

    def ranges(self, job_type: str, group: int) -> list[Range]:
        """The index ranges to look at: returned rows, then fresh ones from their floors."""
        ranges = [Range(job_type, group, False, MIN_RANK, 0, MAX_RANK)]
        lo, floor = MIN_RANK, 0
        for rank, level in sorted(self._levels.get(job_type, {}).items()):
            ranges.append(Range(job_type, group, True, lo, floor, rank - 1))
            lo, floor = rank, level.floor
        ranges.append(Range(job_type, group, True, lo, floor, MAX_RANK))
        return ranges

    def learn(self, answer: ClaimAnswer) -> None:
        """Raises floors as far as the answer of a claim allows."""
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        for (seq, _, _), rank, job_type, _, _, _, fresh, *_ in answer.assignments:
            if fresh:
                # They come in the order of their seq.
                low, _ = seen.get((job_type, rank), (seq, seq))
                seen[job_type, rank] = low, seq
        for (job_type, rank), (low, top) in seen.items():
            levels = self._levels.setdefault(job_type, {})
            if rank not in levels and len(levels) >= MOST_LEVELS:
                levels.clear()
            level = levels.setdefault(rank, _Level())
            while level.pending and level.pending[0][1] < answer.horizon_xid:
                earlier_top, _ = level.pending.popleft()
                level.floor = max(level.floor, min(earlier_top, low - 1))
            if len(level.pending) < MOST_PENDING:
                level.pending.append((top, answer.own_xid))


def all_ranges(floors: Floors, types: Iterable[tuple[str, int]]) -> list[Range]:
    """The ranges of several (job type, group) pairs."""
    return [one for job_type, group in types for one in floors.ranges(job_type, group)]
