"""One log line for each job that starts and ends, or one a second for very many.

Its logger is `laneway.jobs`, so that these lines can be silenced separately.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from laneway.domain.approval import analysed_type, display_name
from laneway.observability.log_throttle import LogThrottle, Suppressed
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Assignment, Verdict

log = SafeLogger("laneway.jobs")

# Lines that are logged one by one, before there is one summary per interval.
MAX_LINES: Final = 100
INTERVAL_S: Final = 1.0
# Job types that a summary names.
MAX_NAMED: Final = 5
# Logged elsewhere, with their reason: see attempt_log.py.
_ELSEWHERE: Final = frozenset({"failed", "retried", "fenced", "left"})
_DONE: Final = frozenset({"completed", "analyzed"})


class JobLogger:
    """Logs starts at DEBUG and ends at INFO."""

    def __init__(self) -> None:
        self._starts = LogThrottle(INTERVAL_S, MAX_LINES, self._log_more_starts)
        self._ends = LogThrottle(INTERVAL_S, MAX_LINES, self._log_more_ends)
        # Number and total seconds of the ends to summarize, by job type and outcome.
        self._more: dict[tuple[str, str], list[float]] = {}
        # Until the next summary no end can be logged: asking the throttle would cost more.
        self._is_counting = False

    def started(self, lane: str, assignments: Sequence[Assignment]) -> None:
        if not log.isEnabledFor(logging.DEBUG):
            return
        for one in assignments:
            if self._starts.admit("starts"):
                log.debug(
                    "%s %s: attempt %s started",
                    display_name(one.job_type),
                    one.claim.job_id,
                    one.claim.attempt,
                    extra=job_fields(one.job_type, lane, one),
                )

    @property
    def wants_ends(self) -> bool:
        """Whether ends are logged at all; ask before each batch."""
        return log.isEnabledFor(logging.INFO)

    def ended(self, job_type: str, lane: str, verdict: Verdict, outcome: str) -> None:
        if outcome in _ELSEWHERE:
            return
        if outcome == "waited":
            # Not an end: the handler runs again later.
            log.debug(
                "%s %s: attempt %s waits for %r%s",
                display_name(job_type),
                verdict.claim.job_id,
                verdict.claim.attempt,
                verdict.result,
                after_text(verdict.ran_s),
                extra=job_fields(job_type, lane, verdict),
            )
            return
        if not self._is_counting and self._ends.admit("ends"):
            log.info(
                "%s %s: attempt %s %s%s",
                display_name(job_type),
                verdict.claim.job_id,
                verdict.claim.attempt,
                outcome,
                after_text(verdict.ran_s, "in" if outcome in _DONE else "after"),
                extra=job_fields(job_type, lane, verdict),
            )
            return
        self._is_counting = True
        more = self._more.get((job_type, outcome))
        if more is None:
            more = self._more[job_type, outcome] = [0, 0.0]
        more[0] += 1
        more[1] += verdict.ran_s or 0.0

    def close(self) -> None:
        """Log the summaries now."""
        self._starts.close()
        self._ends.close()

    def _log_more_starts(self, kind: str, suppressed: Suppressed) -> None:
        log.debug("%s more attempts started", f"{suppressed.count:,}")

    def _log_more_ends(self, kind: str, suppressed: Suppressed) -> None:
        most = sorted(self._more.items(), key=lambda one: one[1][0], reverse=True)
        self._more = {}
        self._is_counting = False
        total = sum(int(count) for _, (count, _) in most)
        named = [
            f"{display_name(job_type)} {count:,} {outcome}, {duration_text(total_s / count)} each"
            for (job_type, outcome), (count, total_s) in most[:MAX_NAMED]
        ]
        rest = sum(count for _, (count, _) in most[MAX_NAMED:])
        if rest:
            named.append(f"{rest:,} others")
        log.info("%s more attempts ended: %s", f"{total:,}", "; ".join(named))


def job_fields(job_type: str, lane: str, of: Assignment | Verdict) -> dict[str, object]:
    """The fields of a log line about an attempt, for JSON and for handlers of other libraries."""
    fields: dict[str, object] = {
        "job_id": str(of.claim.job_id),
        "job_type": analysed_type(job_type),
        "lane": lane,
        "attempt": of.claim.attempt,
    }
    if isinstance(of, Verdict) and of.ran_s is not None:
        fields["duration"] = round(of.ran_s, 6)
    return fields


def after_text(seconds: float | None, word: str = "after") -> str:
    """` after 12 ms`; nothing for a handler that was not called."""
    return "" if seconds is None else f" {word} {duration_text(seconds)}"


def duration_text(seconds: float) -> str:
    """`12 ms`, `3.4 s` or `125 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms" if seconds >= 0.001 else "<1 ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"
