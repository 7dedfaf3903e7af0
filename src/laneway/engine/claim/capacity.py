"""The capacity of one worker process: how many more jobs it may start, per isolation and lane."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Protocol, Self

from laneway.config.settings import Settings

MAX_CLAIM: Final = 1000


class Room(Protocol):
    """The number of jobs that may be claimed now."""

    def free(self, lane: str, isolation: str) -> int:
        """Room for jobs of this lane and isolation."""
        ...

    def most(self, lane: str) -> int:
        """Room for jobs of this lane in all isolations together."""
        ...

    def take(self, lane: str, isolation: str, count: int) -> None: ...


class Fullness:
    """Remembers when room ran out, by lane and isolation, noted at each attempt to claim."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self.on_full: Callable[[], None] = lambda: None

    def note(self, lane: str, kind: str, left: int) -> None:
        if left:
            self._since.pop((lane, kind), None)
        elif (lane, kind) not in self._since:
            self._since[lane, kind] = time.monotonic()
            self.on_full()

    def places(self) -> set[tuple[str, str]]:
        """The lanes and isolations without room."""
        return set(self._since)

    def longest_s(self) -> float:
        """Seconds without room of the lane that has waited longest; 0 if all have room."""
        return max((time.monotonic() - at for at in self._since.values()), default=0.0)

    def published(
        self,
        kinds: Mapping[str, tuple[int, int]],
        needed: Mapping[str, frozenset[str]],
        left: Callable[[str, str], int],
    ) -> dict[str, object]:
        """Used and total room by isolation, and seconds without room by isolation and lane.

        Notes may be old: `left` returns the current room.
        """
        full: dict[str, dict[str, float]] = {}
        now = time.monotonic()
        for (lane, kind), at in list(self._since.items()):
            if kind in needed.get(lane, ()) and not left(lane, kind):
                full.setdefault(kind, {})[lane] = round(now - at, 3)
        used = {kind: {"used": taken, "total": total} for kind, (taken, total) in kinds.items()}
        return {"kinds": used, "full": full}


class Capacity:
    """Divides the room of each isolation so that every lane served can start at least one job.

    A job takes room from its claim until its handler returns, even if a thread ignores its
    cancellation. `slots` bounds all isolations together and is never exceeded: with fewer slots
    than lanes, lanes take turns. `max_jobs` bounds the jobs that this process ever runs.
    """

    def __init__(
        self, sizes: Mapping[str, int], slots: int | None = None, max_jobs: int | None = None
    ) -> None:
        self.sizes = dict(sizes)
        self._slots = slots
        self.jobs_left = max_jobs
        self._lanes: dict[str, frozenset[str]] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        # By isolation: room taken, and lanes that need room and have none.
        self._used: Counter[str] = Counter()
        self._idle: Counter[str] = Counter()
        self.fullness = Fullness()
        # The number of the claim in which each lane last took room.
        self._last_taken: dict[str, int] = {}
        self._takes = 0

    @classmethod
    def of(cls, settings: Settings, max_jobs: int | None = None) -> Self:
        """The capacity that these settings give a worker process."""
        sizes = {
            "async": settings.concurrency,
            "thread": settings.threads,
            "process": max(1, settings.children),
        }
        return cls(sizes, settings.slots, max_jobs)

    def serve(self, lanes: Mapping[str, set[str]]) -> None:
        """Set the lanes served and the isolations that each may need."""
        self._lanes = {lane: frozenset(kinds) for lane, kinds in lanes.items()}
        self._idle.clear()
        for lane, kinds in self._lanes.items():
            self._idle.update(kind for kind in kinds if not self._taken[lane, kind])

    def free(self, lane: str, isolation: str) -> int:
        """Room for jobs of this lane; each other lane without a job keeps room for one."""
        mine = self._taken[lane, isolation]
        reserved = self._idle[isolation]
        if not mine and isolation in self._lanes.get(lane, ()):
            reserved -= 1
        free = max(self.sizes[isolation] - self._used[isolation] - reserved, 0 if mine else 1)
        left = min(free, self.most(lane))
        self.fullness.note(lane, isolation, left)
        return left

    def published(self) -> dict[str, object]:
        """The usage that the worker's row in the database shows."""
        kinds = {kind: (self._used[kind], size) for kind, size in self.sizes.items()}
        if self._slots is not None:
            kinds["slots"] = (self.in_use, self._slots)
        return self.fullness.published(kinds, self._lanes, self.free)

    def most(self, lane: str) -> int:
        most = MAX_CLAIM if self.jobs_left is None else min(MAX_CLAIM, self.jobs_left)
        return most if self._slots is None else min(most, self._free_slots(lane, self._slots))

    def _free_slots(self, lane: str, slots: int) -> int:
        taken: Counter[str] = Counter()
        for (one, _), count in self._taken.items():
            taken[one] += count
        left = slots - sum(taken.values())
        if left <= 0:
            return 0
        others = sum(1 for other in self._lanes if other != lane and not taken[other])
        return max(left - others, 0 if taken[lane] else 1)

    def take(self, lane: str, isolation: str, count: int) -> None:
        self._change(lane, isolation, count)
        self._takes += 1
        self._last_taken[lane] = self._takes
        if self.jobs_left is not None:
            self.jobs_left = max(0, self.jobs_left - count)

    def cap(self, room: int, occupied: int) -> int:
        """Cap `room` by the slots that abandoned handlers leave free, and by the jobs left."""
        if self._slots is not None:
            room = max(0, min(room, self._slots - occupied))
        return room if self.jobs_left is None else min(room, self.jobs_left)

    def last_taken(self, lane: str) -> int:
        """The number of the lane's last claim; the lowest has waited longest for room."""
        return self._last_taken.get(lane, 0)

    def used(self, isolation: str) -> int:
        """Room taken by jobs of all lanes."""
        return self._used[isolation]

    @property
    def is_open(self) -> bool:
        """Whether nothing but the room of each isolation bounds the jobs of this process."""
        return self._slots is None and self.jobs_left is None

    @property
    def is_spent(self) -> bool:
        """Whether the process has claimed all the jobs that it may run."""
        return self.jobs_left == 0

    def release(self, lane: str, isolation: str) -> None:
        self._change(lane, isolation, -1)

    def _change(self, lane: str, isolation: str, count: int) -> None:
        was_idle = not self._taken[lane, isolation]
        self._taken[lane, isolation] += count
        self._used[isolation] += count
        is_idle = not self._taken[lane, isolation]
        if was_idle != is_idle and isolation in self._lanes.get(lane, ()):
            self._idle[isolation] += 1 if is_idle else -1

    @property
    def in_use(self) -> int:
        return sum(self._taken.values())
