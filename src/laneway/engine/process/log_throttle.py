"""Limits log lines of one kind: the first few are logged, then one summary per second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

# Lines of a kind that are logged one by one, before there is one summary per interval.
MAX_LINES: Final = 10
INTERVAL_S: Final = 1.0

T = TypeVar("T")


class Suppressed(Generic[T]):
    """The suppressed items: their number, the number of errors among them, and the last."""

    __slots__ = ("count", "errors", "last")

    def __init__(self, last: T) -> None:
        self.last = last
        self.count = self.errors = 0


class _Burst(Generic[T]):
    """The state of one kind while its lines keep coming."""

    __slots__ = ("logged", "suppressed", "timer")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.timer = timer
        self.logged = 0
        self.suppressed: Suppressed[T] | None = None


class LogThrottle(Generic[T]):
    """Decides which items are logged one by one, and summarizes the rest."""

    def __init__(self, log_suppressed: Callable[[str, Suppressed[T]], None]) -> None:
        self._log_suppressed = log_suppressed
        self._bursts: dict[str, _Burst[T]] = {}

    def admit(self, kind: str, item: T, *, is_error: bool = False) -> bool:
        """Return whether to log the item now; if not, count it for the summary."""
        burst = self._bursts.get(kind)
        if burst is None:
            burst = self._bursts[kind] = _Burst(self._set_timer(kind))
        if burst.logged < MAX_LINES:
            burst.logged += 1
            return True
        if burst.suppressed is None:
            burst.suppressed = Suppressed(item)
        burst.suppressed.last = item
        burst.suppressed.count += 1
        burst.suppressed.errors += is_error
        return False

    def end(self, kind: str) -> None:
        """End the interval: log the summary; if nothing was suppressed, end the burst."""
        burst = self._bursts[kind]
        if burst.suppressed is None:
            del self._bursts[kind]
            return
        self._log_suppressed(kind, burst.suppressed)
        burst.suppressed = None
        burst.timer = self._set_timer(kind)

    def close(self) -> None:
        """Log the summaries now."""
        for kind, burst in self._bursts.items():
            burst.timer.cancel()
            if burst.suppressed is not None:
                self._log_suppressed(kind, burst.suppressed)
        self._bursts.clear()

    def _set_timer(self, kind: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(INTERVAL_S, self.end, kind)
