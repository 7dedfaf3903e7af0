"""Warnings logged at most once per second and cause, so that an outage does not flood the log."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("laneway")


class ThrottledWarnings:
    """Remembers when each cause was last logged, and how often it was suppressed since."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval = interval_s
        self._logged_at: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}
        self._current: set[str] = set()

    def warn(self, cause: str, message: object) -> None:
        now = time.monotonic()
        # `resolved` does not reset this: a connection may come and go all the time.
        if now - self._logged_at.get(cause, -self._interval) < self._interval:
            self._suppressed[cause] = self._suppressed.get(cause, 0) + 1
            return
        more = self._suppressed.pop(cause, 0)
        self._logged_at[cause] = now
        self._current.add(cause)
        log.warning("%s: %s%s", cause, message, f" (and {more} more times)" if more else "")

    def resolved(self, cause: str) -> None:
        """Log that the cause is gone, if a warning about it was logged."""
        if cause in self._current:
            self._current.remove(cause)
            log.info("%s: works again", cause)
