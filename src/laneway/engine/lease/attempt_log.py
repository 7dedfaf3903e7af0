"""Log lines about failed and lost attempts, throttled so that they cannot flood the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Final

from laneway.domain.approval import display_name
from laneway.domain.claim import Claim
from laneway.domain.text import visible
from laneway.engine.lease.job_log import after_text, job_fields
from laneway.engine.run.attempt import Run
from laneway.engine.run.user_frames import cut_traceback
from laneway.observability.log_throttle import LogThrottle, Suppressed
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Verdict, WriteResult

log = SafeLogger("laneway")

LONGEST: Final = 200
# Lines of a kind that are logged one by one, before there is one summary per interval.
MAX_LINES: Final = 10
INTERVAL_S: Final = 1.0
_FAILED: Final = frozenset({"fail", "giveup", "confirm"})
# By the answer to a write; `lost`: no answer in time; `void`: the outcome came too late.
_REASONS: Final = {
    "lost": "taken away: the lease could not be renewed in time",
    "fenced": "taken away: the job was reclaimed or has ended",
    "cancel_requested": "asked to stop: the job is being cancelled",
    "void": "superseded: its outcome was discarded",
}


class FailureLog:
    """Logs failed attempts once it is known whether their jobs are retried."""

    def __init__(self) -> None:
        self._noted: dict[tuple[int, int], tuple[Run, Verdict]] = {}
        self.throttle = LogThrottle(INTERVAL_S, MAX_LINES, self._log_suppressed)

    def note(self, run: Run, verdict: Verdict) -> None:
        """Remember a failure until its verdict is settled."""
        if verdict.kind in _FAILED:
            self._noted[run.claim.seq, run.claim.attempt] = run, verdict

    def settled(self, verdicts: Sequence[Verdict], answers: Sequence[WriteResult]) -> None:
        """Log the noted failures among these, by the new status of their jobs."""
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
        """Log the suppressed failures now."""
        self.throttle.close()

    def _log(self, run: Run, verdict: Verdict, *, is_last: bool) -> None:
        job_type = run.handler.job_type
        if not self.throttle.admit(job_type, verdict, is_error=is_last):
            return
        error = _decoded(verdict)
        traceback = error.get("traceback") or ""
        if traceback:
            traceback = "\n" + cut_traceback(traceback, run.handler.fn.__module__)
        log.log(
            logging.ERROR if is_last else logging.WARNING,
            "%s %s: attempt %s failed%s: %s; %s%s",
            display_name(job_type),
            run.claim.job_id,
            run.claim.attempt,
            after_text(verdict.ran_s),
            _summary(error),
            "the job has failed" if is_last else f"retry in {_wait_s(run, verdict):.3g} s",
            traceback,
            extra={
                **job_fields(job_type, run.lane, verdict),
                "error_type": visible(error["type"]),
                "traceback": traceback,
                "in_child": run.handler.isolation == "process" or run.place == "child",
            },
        )

    def _log_suppressed(self, job_type: str, suppressed: Suppressed) -> None:
        log.log(
            logging.ERROR if suppressed.errors else logging.WARNING,
            "%s: %s more attempts failed, %s of them for good; last error: %s",
            display_name(job_type),
            f"{suppressed.count:,}",
            f"{suppressed.errors:,}",
            _summary(_decoded(suppressed.last)),
        )


class LossLog:
    """Logs attempts that were taken away, cancelled or superseded from outside."""

    def __init__(self) -> None:
        self._throttle = LogThrottle(INTERVAL_S, MAX_LINES, self._log_suppressed)

    def log(self, job_type: str, claim: Claim, answer: str) -> None:
        if self._throttle.admit(f"{answer} {job_type}", (job_type, answer)):
            log.log(
                _level(answer),
                "%s %s: attempt %s was %s",
                display_name(job_type),
                claim.job_id,
                claim.attempt,
                _REASONS[answer],
            )

    def close(self) -> None:
        """Log the suppressed losses now."""
        self._throttle.close()

    def _log_suppressed(self, kind: str, suppressed: Suppressed) -> None:
        job_type, answer = suppressed.last
        log.log(
            _level(answer),
            "%s: %s more attempts were %s",
            display_name(job_type),
            f"{suppressed.count:,}",
            _REASONS[answer],
        )


def _level(answer: str) -> int:
    return logging.INFO if answer == "cancel_requested" else logging.WARNING


def _decoded(verdict: Verdict) -> dict[str, str]:
    return json.loads(verdict.error) if verdict.error else {"type": "Error", "message": ""}


def _summary(error: dict[str, str]) -> str:
    """Type and message of the error on one line, shortened."""
    text = visible(f"{error['type']}: {error['message'][:LONGEST]}")
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _wait_s(run: Run, verdict: Verdict) -> float:
    """The approximate delay of the retry: the database adds the jitter."""
    if verdict.delay_s is not None:
        return verdict.delay_s
    return run.handler.retry.delay(run.retries + 1, 0.5)
