"""The room of one worker process: how many more jobs it may start, per isolation and lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

MOST: Final = 1000


class Room(Protocol):
    """How much more may be claimed, and that it was."""

    def free(self, lane: str, isolation: str) -> int:
        """Room for jobs of this lane and isolation now."""
        ...

    def most(self, lane: str) -> int:
        """At most so many at once, whatever their isolation."""
        ...

    def take(self, lane: str, isolation: str, count: int) -> None: ...


class Rooms:
    """Divides each kind of room so that every lane served can always start at least one job.

    A job takes room from its claim until its handler returned; a thread that ignores its
    cancellation takes it until it really returns.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        self._lanes: dict[str, frozenset[str]] = {}
        self._taken: Counter[tuple[str, str]] = Counter()

    def serve(self, lanes: Mapping[str, set[str]]) -> None:
        """Says which isolations each lane served may need."""
        self._lanes = {lane: frozenset(kinds) for lane, kinds in lanes.items()}

    def free(self, lane: str, isolation: str) -> int:
        """Room for jobs of this lane now; the last place of every other lane stays reserved."""
        mine = self._taken[lane, isolation]
        others = 0
        for (other, kind), taken in self._taken.items():
            if kind == isolation and other != lane:
                others += taken
        for other, kinds in self._lanes.items():
            if other != lane and isolation in kinds and not self._taken[other, isolation]:
                others += 1
        return max(self._sizes[isolation] - others - mine, 0 if mine else 1)

    def most(self, lane: str) -> int:
        return MOST

    def take(self, lane: str, isolation: str, count: int) -> None:
        self._taken[lane, isolation] += count

    def give_back(self, lane: str, isolation: str) -> None:
        self._taken[lane, isolation] -= 1

    @property
    def in_use(self) -> int:
        return sum(self._taken.values())
