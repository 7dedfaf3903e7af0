"""Says what is wrong at most once per second and cause, so that trouble does not flood the log."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("laneway")


class Complaints:
    """Remembers when each cause was last told."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval = interval_s
        self._told: dict[str, float] = {}
        self._held_back: dict[str, int] = {}

    def tell(self, cause: str, message: object) -> None:
        now = time.monotonic()
        if now - self._told.get(cause, -self._interval) < self._interval:
            self._held_back[cause] = self._held_back.get(cause, 0) + 1
            return
        held = self._held_back.pop(cause, 0)
        self._told[cause] = now
        log.warning("%s: %s%s", cause, message, f" (and {held} times more)" if held else "")

    def over(self, cause: str) -> None:
        """The trouble has passed; says so if it was told."""
        if self._told.pop(cause, None) is not None:
            self._held_back.pop(cause, None)
            log.info("%s: works again", cause)
