"""Limits repeated log lines, so that an outage or a failing handler cannot flood the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

INTERVAL_S: Final = 1.0


class Suppressed:
    """The lines of a kind that were not logged: their number, errors among them, the last one."""

    __slots__ = ("count", "errors", "last")

    def __init__(self) -> None:
        self.count = self.errors = 0
        self.last: Any = None


class _Burst:
    """The lines of one kind since `began`."""

    __slots__ = ("began", "logged", "suppressed", "timer")

    def __init__(self, began: float) -> None:
        self.began = began
        self.logged = 0
        self.suppressed = Suppressed()
        self.timer: asyncio.TimerHandle | None = None


class LogThrottle:
    """Admits the first `most` lines of a kind per interval, and counts the rest.

    With `summarize`, the event loop passes the rest to it at the end of each interval, and a burst
    lasts until an interval suppressed nothing. Without it, the next line that `warn` logs has the
    number.
    """

    def __init__(
        self,
        interval_s: float = INTERVAL_S,
        most: int = 1,
        summarize: Callable[[str, Suppressed], None] | None = None,
    ) -> None:
        self._interval_s = interval_s
        self._most = most
        self._summarize = summarize
        self._bursts: dict[str, _Burst] = {}
        self._current: set[str] = set()

    def warn(self, cause: str, message: object) -> None:
        """Log a warning, with the number of its predecessors that were suppressed."""
        before = self._bursts.get(cause)
        if self.admit(cause, message):
            more = before.suppressed.count if before is not None else 0
            self._current.add(cause)
            log.warning("%s: %s%s", cause, message, f" (and {more} more times)" if more else "")

    def resolved(self, cause: str) -> None:
        """Log that the cause is gone, if a warning about it was logged.

        The interval goes on: a connection may come and go all the time.
        """
        if cause in self._current:
            self._current.remove(cause)
            log.info("%s: works again", cause)

    def admit(self, kind: str, item: object = None, *, is_error: bool = False) -> bool:
        """Return whether to log the item now; if not, count it."""
        now = time.monotonic()
        burst = self._bursts.get(kind)
        if burst is None or (burst.timer is None and now - burst.began >= self._interval_s):
            burst = self._bursts[kind] = _Burst(now)
            self._set_timer(kind, burst)
        if burst.logged < self._most:
            burst.logged += 1
            return True
        burst.suppressed.last = item
        burst.suppressed.count += 1
        burst.suppressed.errors += is_error
        return False

    def end(self, kind: str) -> None:
        """End the interval: summarize it; if nothing was suppressed, end the burst."""
        burst = self._bursts[kind]
        if not burst.suppressed.count:
            del self._bursts[kind]
            return
        self._log_suppressed(kind, burst)
        self._set_timer(kind, burst)

    def close(self) -> None:
        """Summarize all intervals now."""
        for kind, burst in self._bursts.items():
            if burst.timer is not None:
                burst.timer.cancel()
            if burst.suppressed.count:
                self._log_suppressed(kind, burst)
        self._bursts.clear()

    def _log_suppressed(self, kind: str, burst: _Burst) -> None:
        suppressed, burst.suppressed = burst.suppressed, Suppressed()
        if self._summarize is not None:
            self._summarize(kind, suppressed)

    def _set_timer(self, kind: str, burst: _Burst) -> None:
        if self._summarize is not None:
            loop = asyncio.get_running_loop()
            burst.timer = loop.call_later(self._interval_s, self.end, kind)
