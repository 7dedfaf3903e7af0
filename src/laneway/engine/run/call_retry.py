"""Retries of a call inside a handler (`ctx.retry`), which do not use up attempts of the job."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from laneway.domain.handler_signals import Cancel, PublicError, Retry, Snooze
from laneway.domain.retry import RetryPolicy
from laneway.engine.async_callable import is_async
from laneway.engine.code_place import name_of
from laneway.engine.run.handler_channel import HandlerChannel
from laneway.errors import InvalidInput, LanewayError

LONGEST_RETRY_AFTER_S: Final = 3600.0
# How often a waiting plain handler checks whether it should stop.
TICK_S: Final = 0.1
# An empty report counts as progress; without progress the job may be reclaimed after a minute.
MOVE_S: Final = 15.0
# Exceptions that are about the job, and not failures of the call.
_JOB_SIGNALS: Final = (Snooze, Cancel, PublicError, LanewayError)


@dataclass(frozen=True, slots=True)
class CallRetryOptions:
    """The number of tries, the exceptions to retry on, and the pauses between tries."""

    tries: int = 5
    on: type[Exception] | tuple[type[Exception], ...] = Exception
    policy: RetryPolicy = field(default_factory=RetryPolicy)

    def __post_init__(self) -> None:
        if type(self.tries) is not int or self.tries < 1:
            raise InvalidInput("tries", f"must be a whole number from 1, not {self.tries!r}")

    @classmethod
    def split(cls, options: Mapping[str, Any]) -> tuple[CallRetryOptions, dict[str, Any]]:
        """Separate `tries`, `on` and `policy` from the arguments of the call."""
        own = {name: options[name] for name in ("tries", "on", "policy") if name in options}
        return cls(**own), {name: each for name, each in options.items() if name not in own}

    def wait_s(self, error: Exception, n: int) -> float | None:
        """Seconds to wait after the n-th try failed; None if the error is final."""
        if n >= self.tries or isinstance(error, _JOB_SIGNALS):
            return None
        if not isinstance(error, self.on) and not isinstance(error, Retry):
            return None
        asked_s = retry_after(error)
        if asked_s is not None:
            # Never earlier than asked for, with jitter.
            return asked_s * random.uniform(1.0, 1.0 + self.policy.jitter)
        return self.policy.delay(n, random.random())


def retry_after(error: BaseException) -> float | None:
    """Seconds that a failed call asks to wait, by its attributes or its Retry-After header."""
    asked: object = getattr(error, "after", None) if isinstance(error, Retry) else None
    if asked is None:
        asked = getattr(error, "retry_after", None)
    if asked is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
        if headers is None:
            headers = getattr(error, "headers", None)
        get = getattr(headers, "get", None)
        if callable(get):
            asked = get("Retry-After") or get("retry-after")
    seconds = _seconds(asked)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)


def _seconds(asked: object) -> float | None:
    """Parse a number, or a header with a number or a date."""
    if isinstance(asked, (int, float)) and not isinstance(asked, bool) and asked == asked:
        return float(asked)
    if not isinstance(asked, str):
        return None
    try:
        return float(asked) if float(asked) == float(asked) else None
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(asked)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (at - datetime.now(UTC)).total_seconds()


async def call(
    channel: HandlerChannel,
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: CallRetryOptions,
) -> Any:
    """Call fn until it succeeds or its error is final; fn may be plain or async."""
    n = 0
    while True:
        n += 1
        try:
            result = fn(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            wait_s = options.wait_s(error, n)
            if wait_s is None:
                raise
            _log_failure(channel, error, n, options, wait_s)
        until = time.monotonic() + wait_s
        while True:
            channel.report()
            left_s = max(0.0, until - time.monotonic())
            # A job that should stop is cancelled here.
            await asyncio.sleep(min(left_s, MOVE_S))
            if left_s <= MOVE_S:
                break


def call_blocking(
    channel: HandlerChannel,
    check: Callable[[], None],
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: CallRetryOptions,
) -> Any:
    """`call` for a plain handler; `check` raises if the handler should stop."""
    if is_async(fn):
        raise InvalidInput("retry", f"{name_of(fn)} is async, but its handler is a plain function")
    n = 0
    while True:
        check()
        n += 1
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            wait_s = options.wait_s(error, n)
            if wait_s is None:
                raise
            _log_failure(channel, error, n, options, wait_s)
        until = time.monotonic() + wait_s
        moves_at = 0.0
        while (left_s := until - time.monotonic()) > 0:
            check()
            if time.monotonic() >= moves_at:
                channel.report()
                moves_at = time.monotonic() + MOVE_S
            time.sleep(min(left_s, TICK_S))


def _log_failure(
    channel: HandlerChannel, error: Exception, n: int, options: CallRetryOptions, wait_s: float
) -> None:
    channel.log(
        "warning",
        f"try {n} of {options.tries} failed with {type(error).__name__}; next in {wait_s:.1f} s",
    )
