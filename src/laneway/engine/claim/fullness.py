"""The time since which a process has no room for a lane, as published."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


class Fullness:
    """Remembers when room ran out, by lane and isolation, noted at each attempt to claim."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self.on_full: Callable[[], None] = _ignore

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


def _ignore() -> None:
    pass
