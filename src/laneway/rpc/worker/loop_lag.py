"""Detects that the worker's event loop was blocked, so that assignments read then may be old.

The leases of unread assignments are not renewed. A process that was stopped, or whose event loop a
handler has blocked, finds such assignments when it continues.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

INTERVAL_S: Final = 0.25
BLOCKED_S: Final = 0.75
# Assignments that arrived meanwhile are read within this time.
AFTER_S: Final = 1.0


class LoopLag:
    """Measures pauses of the event loop with a regular timer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = time.monotonic()
        self._gap_s = 0.0
        self._gap_at = -AFTER_S
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._last = time.monotonic()
        self._timer = self._loop.call_later(INTERVAL_S, self.tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def tick(self) -> None:
        now = time.monotonic()
        if now - self._last > BLOCKED_S:
            self._gap_s, self._gap_at = now - self._last, now
        self._last = now
        self._timer = self._loop.call_later(INTERVAL_S, self.tick)

    @property
    def waited_s(self) -> float:
        """The longest time that a message read now may have waited; 0.0 without a pause."""
        now = time.monotonic()
        # A message may be read before the timer has run after a pause.
        gap_s = now - self._last
        if now - self._gap_at < AFTER_S:
            gap_s = max(gap_s, self._gap_s)
        return gap_s if gap_s > BLOCKED_S else 0.0
