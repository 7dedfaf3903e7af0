"""Which failures at the start of a worker or server are waited for, and for how long."""

from __future__ import annotations

from typing import Final

from laneway.errors import DatabaseUnavailable, LoginRefused
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

# A login may be refused for a moment, while its role or database is being created.
LOGIN_TRIES: Final = 5
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S: Final = 2.0
# Between two lines about a server that is away, however long that lasts.
WARN_S: Final = 10.0


class StartRetry:
    """Waits for a server that is away without end, and for a refused login for a few tries."""

    def __init__(self, hint: str) -> None:
        """`hint` says what to check while no server can be reached."""
        self._warnings = LogThrottle(WARN_S)
        self._hint = hint
        self._failures = 0
        self._refusals = 0

    def pause_s(self, error: DatabaseUnavailable) -> float:
        """Log the error and return the seconds until the next try; raise it if there is none."""
        if isinstance(error, LoginRefused):
            self._refusals += 1
            if self._refusals >= LOGIN_TRIES:
                raise error
            log.warning("start: %s (try %s of %s)", error, self._refusals, LOGIN_TRIES)
        elif type(error) is DatabaseUnavailable:
            self._refusals = 0
            self._warnings.warn("start", f"{error} ({self._hint} trying again)")
        else:
            raise error
        pause = FIRST_PAUSE_S * (1 << min(self._failures, 10))
        self._failures += 1
        return min(LONGEST_PAUSE_S, pause)
