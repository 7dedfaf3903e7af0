"""Log lines about many of a kind: the first few one by one, then one a second tells of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

# Of a kind; beyond that, one line per interval tells how many, for as long as it goes on.
MOST: Final = 10
INTERVAL_S: Final = 1.0

T = TypeVar("T")


class Suppressed(Generic[T]):
    """What was held back: how many, how many of them were grave, the last one."""

    __slots__ = ("count", "errors", "last")

    def __init__(self, last: T) -> None:
        self.last = last
        self.count = self.errors = 0


class _Burst(Generic[T]):
    """A time in which there is something to tell of a kind."""

    __slots__ = ("logged", "suppressed", "timer")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.timer = timer
        self.logged = 0
        self.suppressed: Suppressed[T] | None = None


class LogThrottle(Generic[T]):
    """Says which are told by themselves; has the rest told."""

    def __init__(self, log_suppressed: Callable[[str, Suppressed[T]], None]) -> None:
        self._log_suppressed = log_suppressed
        self._bursts: dict[str, _Burst[T]] = {}

    def admit(self, kind: str, item: T, *, is_error: bool = False) -> bool:
        """True: to be told now. False: it is held back, and counted."""
        burst = self._bursts.get(kind)
        if burst is None:
            burst = self._bursts[kind] = _Burst(self._set_timer(kind))
        if burst.logged < MOST:
            burst.logged += 1
            return True
        if burst.suppressed is None:
            burst.suppressed = Suppressed(item)
        burst.suppressed.last = item
        burst.suppressed.count += 1
        burst.suppressed.errors += is_error
        return False

    def end(self, kind: str) -> None:
        """The interval is over: tells of the rest; if there was none, all is told again."""
        burst = self._bursts[kind]
        if burst.suppressed is None:
            del self._bursts[kind]
            return
        self._log_suppressed(kind, burst.suppressed)
        burst.suppressed = None
        burst.timer = self._set_timer(kind)

    def close(self) -> None:
        """Tells at once what was held back."""
        for kind, burst in self._bursts.items():
            burst.timer.cancel()
            if burst.suppressed is not None:
                self._log_suppressed(kind, burst.suppressed)
        self._bursts.clear()

    def _set_timer(self, kind: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(INTERVAL_S, self.end, kind)
