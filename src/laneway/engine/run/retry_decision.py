"""The decision of a handler's retry function about one failure."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Callable
from contextvars import copy_context
from datetime import timedelta
from math import isfinite
from threading import Thread
from typing import Final

from laneway.domain.duration import YEAR_S
from laneway.domain.retry import RetryFunction
from laneway.engine.run.attempt import Run
from laneway.engine.run.exception_text import summary_of
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Verdict

log = SafeLogger("laneway")

BY_POLICY: Final = "policy"
# How long a retry function may think.
LONGEST_S: Final = 5.0


def decide(run: Run, error: BaseException, described: str) -> Verdict:
    """The verdict on a failure: retried after the function's delay, by the policy, or not at all.

    A function that raises, or returns something else than a delay or None, leaves it to the policy.
    """
    ran_s = run.ran_s
    fn, most = run.handler.retry_fn, run.assignment.max_retries
    delay_s: float | str | None = BY_POLICY
    if fn is not None and run.retries < most:
        delay_s = _ask(run, fn, error)
    if delay_s is None:
        return Verdict(run.claim, "giveup", error=described, ran_s=ran_s)
    chosen = None if isinstance(delay_s, str) else delay_s
    return Verdict(run.claim, "fail", error=described, delay_s=chosen, ran_s=ran_s)


async def off_loop(run: Run, judge: Callable[[], Verdict | None]) -> Verdict | None:
    """Call `judge` outside the event loop if it may ask the user's function, which may block."""
    if run.handler.retry_fn is None:
        return judge()
    for timer in (run.timer, run.grace):
        # The handler has ended, or is abandoned: its time is over.
        if timer is not None:
            timer.cancel()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Verdict | None] = loop.create_future()

    def give(verdict: Verdict | None) -> None:
        if not answer.done():
            answer.set_result(verdict)

    def work() -> None:
        verdict = judge()
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(give, verdict)

    _start(work)
    return await answer


def _ask(run: Run, fn: RetryFunction, error: BaseException) -> float | str | None:
    """The function's answer, from a thread in which it may stay forever."""
    answers: queue.SimpleQueue[float | str | None] = queue.SimpleQueue()
    try:
        _start(lambda: answers.put(_answer(run, fn, error)))
        return answers.get(timeout=LONGEST_S)
    except queue.Empty:
        _warn(run, f"gave no answer within {LONGEST_S:g} s")
    except RuntimeError as full:
        _warn(run, f"could not be called: {summary_of(full)}")
    return BY_POLICY


def _answer(run: Run, fn: RetryFunction, error: BaseException) -> float | str | None:
    try:
        answer: object = fn(run.retries + 1, error)
        seconds = answer.total_seconds() if isinstance(answer, timedelta) else answer
        if seconds is None or seconds is False:
            return None
        if not isinstance(seconds, bool) and isinstance(seconds, (int, float)) and seconds >= 0:
            # Before a conversion, which overflows for a large int. NaN is not at least 0.
            shortened = float(min(seconds, YEAR_S))
            if not isinstance(seconds, float) or isfinite(seconds):
                return shortened
        problem = f"returned {type(answer).__name__}, not seconds from 0, a timedelta or None"
    except BaseException as broken:
        # Also SystemExit: the handler's own failure counts.
        problem = f"raised {summary_of(broken)}"
    _warn(run, problem)
    return BY_POLICY


def _start(work: Callable[[], object]) -> None:
    """Run it in a thread that does not keep the process alive, in the current context."""
    context = copy_context()
    Thread(target=lambda: context.run(work), name="laneway retry", daemon=True).start()


def _warn(run: Run, problem: str) -> None:
    log.warning(
        "handler %r: its retry function %s; job %s is retried by the default policy",
        run.handler.job_type,
        problem,
        run.claim.job_id,
    )
