"""The room of one stream: the number of jobs that its worker still accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from laneway.engine.claim.capacity import MAX_CLAIM, Fullness

TOTAL: Final = ""


class StreamCapacity:
    """Divides room so that a lane with running jobs leaves one place to every other lane.

    Unlike in a worker process the sizes are never exceeded: with fewer places than lanes, the
    first lane to ask gets the place. A job takes room from its claim until its result is stored.
    """

    def __init__(self, total: int, sizes: Mapping[str, int]) -> None:
        """`sizes` are by isolation; 0: only the total bounds it."""
        self.total = total
        self._bounded = frozenset(kind for kind, size in sizes.items() if size)
        self._sizes = {kind: min(total, size or total) for kind, size in sizes.items()}
        self._sizes[TOTAL] = total
        self._lanes: dict[str, frozenset[str]] = {}
        self._taken: dict[str, Counter[str]] = {kind: Counter() for kind in self._sizes}
        self.in_use = 0
        self._fullness = Fullness()
        self._published: set[tuple[str, str]] | None = None
        # The most jobs of the next claim.
        self.share = MAX_CLAIM

    def serve(self, lanes: Mapping[str, set[str]]) -> None:
        """Sets the isolations that each served lane may need."""
        self._lanes = {lane: frozenset((*kinds, TOTAL)) for lane, kinds in lanes.items()}

    def free(self, lane: str, isolation: str) -> int:
        left = min(self._left(lane, isolation), self._left(lane, TOTAL))
        self._fullness.note(lane, isolation, left)
        return left

    def published(self) -> tuple[dict[str, object], bool]:
        """The room to store in the database, and whether a lane lost or gained room since."""
        for lane, kinds in self._lanes.items():
            for kind in kinds - {TOTAL}:
                self.free(lane, kind)
        needed = {kind for kinds in self._lanes.values() for kind in kinds if kind}
        taken = {kind: sum(by_lane.values()) for kind, by_lane in self._taken.items() if kind}
        # A worker gives no size for an isolation that none of its handlers has.
        used = {
            kind: (count, self._sizes[kind])
            for kind, count in taken.items()
            if count or kind in self._bounded or kind in needed
        }
        if self.total < sum(self._sizes[kind] for kind in needed):
            used["slots"] = (self.in_use, self.total)
        room = self._fullness.published(used, self._lanes, self.free)
        before, self._published = self._published, self._fullness.places()
        return room, before != self._published

    def most(self, lane: str) -> int:
        return min(MAX_CLAIM, self.share, self._left(lane, TOTAL))

    def left(self, lane: str) -> int:
        """The room for jobs of this lane, of any isolation."""
        return self._left(lane, TOTAL)

    def take(self, lane: str, isolation: str, count: int) -> None:
        self._taken[isolation][lane] += count
        self._taken[TOTAL][lane] += count
        self.in_use += count

    def release(self, lane: str, isolation: str, count: int = 1) -> None:
        self.take(lane, isolation, -count)

    def _left(self, lane: str, kind: str) -> int:
        taken = self._taken[kind]
        left = self._sizes[kind] - sum(taken.values())
        if left <= 0:
            return 0
        others = sum(
            1 for other, kinds in self._lanes.items()
            if other != lane and kind in kinds and not taken[other]
        )  # fmt: skip
        return max(left - others, 0 if taken[lane] else 1)
