"""Middleware: functions around every handler, each with a `call_next` that runs the rest.

The first one registered is the outermost. Async middleware is called around `async def` handlers,
plain middleware around plain ones: neither could await, or wait for, the other.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from laneway.domain.handler_signals import Cancel, Retry, Snooze, Suspended
from laneway.engine.async_callable import WRAPPED, hides_async, is_async
from laneway.engine.code_place import name_of, place_of
from laneway.engine.registry import Handler, Registry
from laneway.engine.run.handler_channel import Interrupted
from laneway.errors import ConfigError, Refused, StaleAttempt
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

AsyncHandler: TypeAlias = Callable[..., Awaitable[Any]]
# Raised again if a middleware swallows one: the handler did not complete its job.
SIGNALS: Final = (
    asyncio.CancelledError,
    Interrupted,
    StaleAttempt,
    Snooze,
    Cancel,
    Retry,
    Suspended,
)
_MAX_SHOWN: Final = 5


def check_middleware(fn: object) -> Callable[..., Any]:
    """The function, if it can be called as `fn(ctx, call_next)`; else ConfigError."""
    if not callable(fn):
        raise ConfigError(f"@lw.middleware: must be above a function, not {type(fn).__name__}")
    where = f"{place_of(fn)}: middleware {name_of(fn)}"
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigError(f"{where}: must not yield; return call_next() instead")
    if hides_async(fn):
        raise ConfigError(f"{where} {WRAPPED}")
    try:
        inspect.signature(fn).bind(None, None)
    except TypeError as error:
        raise ConfigError(f"{where}: must take (ctx, call_next): {error}") from None
    return fn


def around(registry: Registry, handler: Handler) -> Callable[..., Any]:
    """The handler's function inside the middleware of its kind; some handlers have none."""
    middleware = registry.middleware
    if not middleware or handler.is_analysis or handler.is_internal:
        return handler.fn
    chosen = [one for one in middleware if is_async(one) == handler.is_async]
    if not chosen:
        return handler.fn
    wrap = _around_async if handler.is_async else _around_plain
    return wrap(chosen, handler.fn)


def _around_async(middleware: Sequence[AsyncHandler], fn: AsyncHandler) -> AsyncHandler:
    async def call(ctx: Any, **kwargs: Any) -> Any:
        swallowed: list[BaseException] = []

        async def run(place: int) -> Any:
            if place < len(middleware):
                return await middleware[place](ctx, _Once(lambda: run(place + 1)))
            try:
                return await fn(ctx, **kwargs)
            except SIGNALS as signal:
                swallowed.append(signal)
                raise

        result = await run(0)
        if swallowed and not _is_own_timeout(ctx, swallowed[0]):
            raise swallowed[0]
        return result

    return call


def _is_own_timeout(ctx: Any, signal: BaseException) -> bool:
    """Whether a middleware cancelled the handler itself, as `asyncio.timeout` does."""
    return isinstance(signal, asyncio.CancelledError) and not ctx.cancelled


def _around_plain(
    middleware: Sequence[Callable[..., Any]], fn: Callable[..., Any]
) -> Callable[..., Any]:
    def call(ctx: Any, **kwargs: Any) -> Any:
        swallowed: list[BaseException] = []

        def run(place: int) -> Any:
            if place < len(middleware):
                return middleware[place](ctx, _Once(lambda: run(place + 1)))
            try:
                return fn(ctx, **kwargs)
            except SIGNALS as signal:
                swallowed.append(signal)
                raise

        result = run(0)
        if swallowed:
            raise swallowed[0]
        return result

    return call


class _Once:
    """A `call_next`; a second call would run the handler twice and is refused."""

    __slots__ = ("_next", "_was_called")

    def __init__(self, call_next: Callable[[], Any]) -> None:
        self._next = call_next
        self._was_called = False

    def __call__(self) -> Any:
        if self._was_called:
            raise Refused("call_next was called twice: a middleware runs the handler once")
        self._was_called = True
        return self._next()


def warn_of_uncovered(registry: Registry) -> None:
    """Log the handlers that run without the middleware of the other kind."""
    kinds = {is_async(one) for one in registry.middleware}
    for kind in (True, False):
        if kind in kinds or not kinds:
            continue
        missing = [one.job_type for one in registry if one.is_async == kind]
        if missing:
            log.warning(
                "all middleware is %s, so the %s handlers run without it: %s; add a middleware"
                " with %s for them",
                *(("plain", "async") if kind else ("async", "plain")),
                _listed(missing),
                "async def" if kind else "def",
            )


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _MAX_SHOWN
    return ", ".join(ordered[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
