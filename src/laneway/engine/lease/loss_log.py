"""Says in the log which attempts were taken away from this worker, and why, without flooding it."""

from __future__ import annotations

import logging
from typing import Final

from laneway.domain.approval import spoken
from laneway.domain.claim import Claim
from laneway.engine.process.log_throttle import LogThrottle, Suppressed

log = logging.getLogger("laneway")

# By what was answered, or not in time; `void`: it had ended by then.
_WHY: Final = {
    "lost": "taken away: the lease could not be renewed in time",
    "fenced": "taken away: the job was taken back, or has ended",
    "cancel_requested": "asked to stop: the job is to be cancelled",
    "void": "superseded: its end is void",
}


class LossLog:
    """Tells of attempts that end by somebody else's will."""

    def __init__(self) -> None:
        self._throttle: LogThrottle[tuple[str, str]] = LogThrottle(self._log_suppressed)

    def log(self, job_type: str, claim: Claim, answer: str) -> None:
        if self._throttle.admit(f"{answer} {job_type}", (job_type, answer)):
            log.log(
                _level(answer),
                "%s %s: attempt %s was %s",
                spoken(job_type),
                claim.job_id,
                claim.attempt,
                _WHY[answer],
            )

    def close(self) -> None:
        """Tells at once what was held back."""
        self._throttle.close()

    def _log_suppressed(self, kind: str, suppressed: Suppressed[tuple[str, str]]) -> None:
        job_type, answer = suppressed.last
        count = f"{suppressed.count:,}"
        log.log(
            _level(answer), "%s: %s more attempts were %s", spoken(job_type), count, _WHY[answer]
        )


def _level(answer: str) -> int:
    return logging.INFO if answer == "cancel_requested" else logging.WARNING
