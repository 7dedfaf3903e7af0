"""Says what is wrong at most once per second and cause, so that trouble does not flood the log."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("laneway")


class ThrottledWarnings:
    """Remembers when each cause was last told."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval = interval_s
        self._told: dict[str, float] = {}
        self._held_back: dict[str, int] = {}
        self._current: set[str] = set()

    def warn(self, cause: str, message: object) -> None:
        now = time.monotonic()
        # Also when it has passed and come back: a connection may come and go all the time.
        if now - self._told.get(cause, -self._interval) < self._interval:
            self._held_back[cause] = self._held_back.get(cause, 0) + 1
            return
        held = self._held_back.pop(cause, 0)
        self._told[cause] = now
        self._current.add(cause)
        log.warning("%s: %s%s", cause, message, f" (and {held} times more)" if held else "")

    def resolved(self, cause: str) -> None:
        """The trouble has passed; says so if it was told."""
        if cause in self._current:
            self._current.remove(cause)
            log.info("%s: works again", cause)
