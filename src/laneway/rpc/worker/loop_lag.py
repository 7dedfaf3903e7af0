"""Notices when the worker's event loop has stood still: what is read then may be as old.

Nobody renews an assignment that waits to be read, and a process that was stopped, or whose event
loop a handler has blocked, finds such ones when it goes on.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

INTERVAL_S: Final = 0.25
STILL_S: Final = 0.75
# What has gathered meanwhile is read within this time.
AFTER_S: Final = 1.0


class LoopLag:
    """Beats as long as the event loop turns."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = time.monotonic()
        self._gap_s = 0.0
        self._gap_at = -AFTER_S
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._last = time.monotonic()
        self._timer = self._loop.call_later(INTERVAL_S, self.beat)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def beat(self) -> None:
        now = time.monotonic()
        if now - self._last > STILL_S:
            self._gap_s, self._gap_at = now - self._last, now
        self._last = now
        self._timer = self._loop.call_later(INTERVAL_S, self.beat)

    @property
    def waited_s(self) -> float:
        """How long what comes now may have waited; 0.0 while all goes well."""
        now = time.monotonic()
        # The stillness may be noticed before its end was.
        gap_s = now - self._last
        if now - self._gap_at < AFTER_S:
            gap_s = max(gap_s, self._gap_s)
        return gap_s if gap_s > STILL_S else 0.0
