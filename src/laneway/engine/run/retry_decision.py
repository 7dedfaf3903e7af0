"""The decision of a handler's retry function about one failure."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite
from typing import Final

from laneway.domain.duration import YEAR_S
from laneway.domain.retry import RetryFunction
from laneway.engine.run.attempt import Run
from laneway.engine.run.exception_text import summary_of
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Verdict

log = SafeLogger("laneway")

BY_POLICY: Final = "policy"


def decide(run: Run, error: BaseException, described: str) -> Verdict:
    """The verdict on a failure: retried after the function's delay, by the policy, or not at all.

    A function that raises, or returns something else than a delay or None, leaves it to the policy.
    """
    fn, most = run.handler.retry_fn, run.assignment.max_retries
    delay_s: float | str | None = BY_POLICY
    if fn is not None and run.retries < most:
        delay_s = _ask(run, fn, error)
    if delay_s is None:
        return Verdict(run.claim, "giveup", error=described, ran_s=run.ran_s)
    chosen = None if isinstance(delay_s, str) else delay_s
    return Verdict(run.claim, "fail", error=described, delay_s=chosen, ran_s=run.ran_s)


def _ask(run: Run, fn: RetryFunction, error: BaseException) -> float | str | None:
    try:
        answer: object = fn(run.retries + 1, error)
        seconds = answer.total_seconds() if isinstance(answer, timedelta) else answer
    except BaseException as broken:
        # Also SystemExit: the handler's own failure counts.
        _warn(run, f"raised {summary_of(broken)}")
        return BY_POLICY
    if seconds is None or seconds is False:
        return None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not isfinite(seconds)
        or seconds < 0
    ):
        _warn(run, f"returned {type(answer).__name__}, not seconds from 0, a timedelta or None")
        return BY_POLICY
    return min(float(seconds), YEAR_S)


def _warn(run: Run, problem: str) -> None:
    log.warning(
        "handler %r: its retry function %s; job %s is retried by the default policy",
        run.handler.job_type,
        problem,
        run.claim.job_id,
    )
