"""The room of one stream: the number of jobs that its worker still accepts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from laneway.engine.claim.capacity import MAX_CLAIM, Fullness

TOTAL: Final = ""
# The isolation of jobs that may be claimed ahead of room.
AHEAD_KIND: Final = "async"
# The most of them, with those whose results are under way.
MOST_AHEAD: Final = 2 * MAX_CLAIM
# What a worker allows ahead of its room counts for this long.
AHEAD_S: Final = 1.0
# The time without claims ahead in a lane where jobs were refused, because they hold more than a
# slot.
REFUSED_S: Final = 5.0


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
        # By lane, the most jobs that the worker takes beyond its room, and until when.
        self._ahead: Mapping[str, int] = {}
        self._ahead_until = 0.0
        self._refused_until: dict[str, float] = {}
        # The lanes that have had jobs beyond room since there was room for all.
        self._ahead_lanes: set[str] = set()

    def serve(self, lanes: Mapping[str, set[str]]) -> None:
        """Sets the isolations that each served lane may need."""
        self._lanes = {lane: frozenset((*kinds, TOTAL)) for lane, kinds in lanes.items()}

    def free(self, lane: str, isolation: str) -> int:
        left = min(self._left(lane, isolation), self._left(lane, TOTAL))
        may_go_ahead = isolation == AHEAD_KIND and bool(self.ahead_left(lane))
        self._fullness.note(lane, isolation, left or int(may_go_ahead))
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
            kind: (min(count, self._sizes[kind]), self._sizes[kind])
            for kind, count in taken.items()
            if count or kind in self._bounded or kind in needed
        }
        if self.total < sum(self._sizes[kind] for kind in needed):
            used["slots"] = (min(self.in_use, self.total), self.total)
        room = self._fullness.published(used, self._lanes, self.free)
        before, self._published = self._published, self._fullness.places()
        return room, before != self._published

    def most(self, lane: str) -> int:
        return min(MAX_CLAIM, self.share, self.left(lane))

    def left(self, lane: str) -> int:
        """The room for jobs of this lane, of any isolation, and beyond it."""
        return max(self._left(lane, TOTAL), self.ahead_left(lane) or 0)

    # Ahead of room ----------------------------------------------------------------------------

    def allow_ahead(self, most: Mapping[str, int]) -> None:
        """Notes how many jobs the worker takes beyond its room now, by lane."""
        self._ahead = {lane: min(MOST_AHEAD, count) for lane, count in most.items()}
        self._ahead_until = time.monotonic() + AHEAD_S

    def refuse_ahead(self, lane: str) -> None:
        """Allows nothing ahead in this lane for a while."""
        self._refused_until[lane] = time.monotonic() + REFUSED_S

    def ahead(self, lane: str) -> int:
        """The most jobs of this lane that may be beyond the room now."""
        if not self.total or lane not in self._ahead:
            return 0
        now = time.monotonic()
        is_allowed = now < self._ahead_until and now >= self._refused_until.get(lane, 0.0)
        return self._ahead[lane] if is_allowed else 0

    def ahead_left(self, lane: str) -> int | None:
        """Jobs that may be claimed ahead now; None: only as many as there is room for.

        A lane without jobs keeps its place, however many jobs of other lanes are ahead.
        """
        if not (most := self.ahead(lane)):
            return None
        held = sum(self._taken[AHEAD_KIND].values())
        left = most + min(self._sizes[AHEAD_KIND] - held, self.total - self.in_use)
        if left <= 0:
            return 0 if self._taken[AHEAD_KIND][lane] else None
        return left

    def take_ahead(self, lane: str, count: int) -> None:
        self._ahead_lanes.add(lane)
        self.take(lane, AHEAD_KIND, count)

    def _beyond(self, kind: str) -> int:
        """Jobs that take no room, because they wait at the worker for its other jobs.

        Together the lanes leave a place to every lane without jobs, as they do without such jobs.
        """
        taken = self._taken[kind]
        over = sum(taken.values()) - max(0, self._sizes[kind] - self._idle_others("", kind))
        most = sum(max(0, taken[lane] - 1) for lane in self._ahead_lanes)
        return max(0, min(over, most))

    # ------------------------------------------------------------------------------------------

    def take(self, lane: str, isolation: str, count: int) -> None:
        self._taken[isolation][lane] += count
        self._taken[TOTAL][lane] += count
        self.in_use += count

    def release(self, lane: str, isolation: str, count: int = 1) -> None:
        self.take(lane, isolation, -count)
        if self._ahead_lanes and not (self._beyond(AHEAD_KIND) or self._beyond(TOTAL)):
            self._ahead_lanes.clear()

    def _left(self, lane: str, kind: str) -> int:
        taken = self._taken[kind]
        left = self._sizes[kind] - sum(taken.values())
        if self._ahead_lanes:
            # Jobs ahead wait for room of their isolation: they take none of the total either.
            left += max(self._beyond(kind), self._beyond(AHEAD_KIND) if kind == TOTAL else 0)
        if left <= 0:
            return 0
        return max(left - self._idle_others(lane, kind), 0 if taken[lane] else 1)

    def _idle_others(self, lane: str, kind: str) -> int:
        """Other lanes that may need this kind of room and have none."""
        taken = self._taken[kind]
        return sum(
            1 for other, kinds in self._lanes.items()
            if other != lane and kind in kinds and not taken[other]
        )  # fmt: skip
