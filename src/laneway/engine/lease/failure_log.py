"""Says in the log which attempts failed and what becomes of their jobs, without flooding it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Final

from laneway.domain.approval import spoken
from laneway.domain.text import visible
from laneway.engine.process.log_throttle import LogThrottle, Suppressed
from laneway.engine.run.attempt import Run
from laneway.store.leases import Verdict, WriteResult

log = logging.getLogger("laneway")

LONGEST: Final = 200
_FAILED: Final = frozenset({"fail", "giveup", "confirm"})


class FailureLog:
    """Remembers failed attempts until it is known whether they are tried again."""

    def __init__(self) -> None:
        self._noted: dict[tuple[int, int], tuple[Run, Verdict]] = {}
        self.throttle: LogThrottle[Verdict] = LogThrottle(self._log_suppressed)

    def note(self, run: Run, verdict: Verdict) -> None:
        """Heeds a verdict that is about to be passed on."""
        if verdict.kind in _FAILED:
            self._noted[run.claim.seq, run.claim.attempt] = run, verdict

    def settled(self, verdicts: Sequence[Verdict], answers: Sequence[WriteResult]) -> None:
        """Tells of those that were noted, by what became of their jobs."""
        if not self._noted:
            return
        statuses = {(one.seq, one.attempt): one.status for one in answers}
        for verdict in verdicts:
            pair = verdict.claim.seq, verdict.claim.attempt
            noted = self._noted.pop(pair, None)
            status = statuses.get(pair)
            if noted is not None and status in ("failed", "approved", "pending"):
                self._log(*noted, is_last=status == "failed")

    def close(self) -> None:
        """Tells at once what was held back."""
        self.throttle.close()

    def _log(self, run: Run, verdict: Verdict, *, is_last: bool) -> None:
        job_type = run.handler.job_type
        if self.throttle.admit(job_type, verdict, is_error=is_last):
            log.log(
                logging.ERROR if is_last else logging.WARNING,
                "%s %s: attempt %s failed: %s; %s",
                spoken(job_type),
                run.claim.job_id,
                run.claim.attempt,
                _error(verdict),
                "the job has failed" if is_last else f"again in {_wait_s(run, verdict):.3g} s",
            )

    def _log_suppressed(self, job_type: str, suppressed: Suppressed[Verdict]) -> None:
        log.log(
            logging.ERROR if suppressed.errors else logging.WARNING,
            "%s: %s more attempts failed, %s of them for good, the last by %s",
            spoken(job_type),
            f"{suppressed.count:,}",
            f"{suppressed.errors:,}",
            _error(suppressed.last),
        )


def _error(verdict: Verdict) -> str:
    """Its type and message on one line, shortened."""
    error = json.loads(verdict.error) if verdict.error else {"type": "Error", "message": ""}
    text = visible(f"{error['type']}: {error['message'][:LONGEST]}")
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _wait_s(run: Run, verdict: Verdict) -> float:
    """About how long the job waits: the database draws the jitter."""
    if verdict.delay_s is not None:
        return verdict.delay_s
    return run.handler.retry.delay(run.retries + 1, 0.5)
