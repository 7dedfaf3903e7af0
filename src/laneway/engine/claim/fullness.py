"""Since when a process has no room for a lane, as it is published."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


class Fullness:
    """Remembers when room ran out, by lane and kind; asked whenever somebody wanted room."""

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
        """Lanes and kinds without room."""
        return set(self._since)

    def longest_s(self) -> float:
        """How long the lane that has waited longest has found no room; 0: none has."""
        return max((time.monotonic() - at for at in self._since.values()), default=0.0)

    def published(
        self,
        kinds: Mapping[str, tuple[int, int]],
        needed: Mapping[str, frozenset[str]],
        left: Callable[[str, str], int],
    ) -> dict[str, object]:
        """Places taken and all there are by kind, and where there is no room for how many seconds.

        What was noted a while ago may have changed: `left` says how it is now.
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
