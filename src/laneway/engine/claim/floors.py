"""Where the live rows of a job type begin, so that a claim need not walk over dead entries.

While an old snapshot pins dead rows, a scan from the head of the index meets every job ever
claimed. A floor per job type and rank skips them. It rises past a seq only when nothing below can
turn up any more. What a claim may have missed below the top it saw was hidden by a transaction: one
that had not committed it (a seq is drawn after the transaction has its number), or one that had it
locked. All of them have lower numbers than the next claim, which begins after this one has ended. A
claim that begins when all numbers up to that have ended, and finds nothing lower, makes that top
the floor.

A transaction of somebody else that stays open holds that up. So after a while the claimer asks
which transactions can hide jobs at all.

What is left is a row that two transactions in turn gave back by failing, at the wrong moments, or a
database restored to an earlier state. So somebody looks below the floors now and then, beside the
claims, because that walks over all the dead rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from laneway.store.leases import MAX_RANK, MIN_RANK, ClaimAnswer, Range

MOST_LEVELS = 16
MOST_PENDING = 64
# So many claims in a row that could not raise a floor are held up by an open transaction.
HELD_UP = 8


@dataclass(slots=True)
class _Level:
    floor: int = 0
    # Tops that were seen, each with the number of the claim after it, once there is one.
    pending: deque[tuple[int, int | None]] = field(default_factory=deque)


class Floors:
    """Floors of the job types one claimer looks at."""

    def __init__(self) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._recent: set[str] = set()
        self._horizon = self._newest_xid = 0

    def forget(self) -> None:
        """Looks from the start again."""
        self._levels.clear()
        self._recent.clear()
        self._horizon = 0

    def forget_types(self, job_types: Iterable[str]) -> None:
        """Looks from the start again for these."""
        for job_type in job_types:
            self._levels.pop(job_type, None)

    def forget_recent(self) -> None:
        """Counts anew how many job types are busy."""
        self._recent.clear()

    @property
    def busy(self) -> int | None:
        """How many job types had fresh jobs of late; None: not known."""
        return len(self._recent) or None

    @property
    def are_held_up(self) -> bool:
        """Whether a transaction that stays open keeps a floor from rising."""
        return any(
            len(level.pending) > HELD_UP
            for levels in self._levels.values()
            for level in levels.values()
        )

    def look_past(self, horizon_xid: int) -> None:
        """From the next claim on, transactions below this number hide nothing."""
        self._horizon = max(self._horizon, horizon_xid)

    @property
    def job_types(self) -> set[str]:
        """Those that have a floor."""
        return {job_type for job_type, _, _ in self.heights()}

    def heights(self) -> list[tuple[str, int, int]]:
        """Each floor there is: job type, rank, seq."""
        return [
            (job_type, rank, level.floor)
            for job_type, levels in self._levels.items()
            for rank, level in levels.items()
            if level.floor
        ]

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
        if answer.own_xid < self._newest_xid:
            # Numbers only grow: this is another database, or an earlier state of it.
            self.forget()
        self._newest_xid = answer.own_xid
        horizon = max(self._horizon, answer.horizon_xid)
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        for (seq, _, _), rank, job_type, _, _, _, fresh, *_ in answer.assignments:
            if fresh:
                # They come in the order of their seq.
                low, _ = seen.get((job_type, rank), (seq, seq))
                seen[job_type, rank] = low, seq
        for (job_type, rank), (low, top) in seen.items():
            self._recent.add(job_type)
            levels = self._levels.setdefault(job_type, {})
            if rank not in levels and len(levels) >= MOST_LEVELS:
                levels.clear()
            level = levels.setdefault(rank, _Level())
            if level.pending and level.pending[-1][1] is None:
                last_top, _ = level.pending.pop()
                level.pending.append((last_top, answer.own_xid))
            while level.pending and (level.pending[0][1] or 0) < horizon:
                earlier_top, _ = level.pending.popleft()
                level.floor = max(level.floor, min(earlier_top, low - 1))
            if len(level.pending) >= MOST_PENDING:
                level.pending = deque(list(level.pending)[1::2])
            level.pending.append((top, None))


def all_ranges(floors: Floors, types: Iterable[tuple[str, int]]) -> list[Range]:
    """The ranges of several (job type, group) pairs."""
    return [one for job_type, group in types for one in floors.ranges(job_type, group)]
