"""Whether the user's callable is async, and what to do if a call was not awaited."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Final, cast

from laneway.engine.run.call_check import AsyncCall

_CALL: Final = "__call__"
WRAPPED: Final = (
    "is a plain function around an async def, which is never awaited: make the wrapper an"
    " `async def` that awaits it"
)


def is_async(fn: object) -> bool:
    """Whether it is defined with `async def`: a function, or the `__call__` of an object."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    if inspect.iscoroutinefunction(fn):
        return True
    is_object = not (inspect.isroutine(fn) or inspect.isclass(fn))
    return is_object and inspect.iscoroutinefunction(getattr(type(fn), _CALL, None))


def hides_async(fn: object) -> bool:
    """Whether it is a plain wrapper, made with `functools.wraps`, of something async."""
    if is_async(fn) or not callable(fn):
        return False
    try:
        inner = inspect.unwrap(fn)
    except ValueError:
        # It wraps itself.
        return False
    return inner is not fn and is_async(inner)


def check_awaited(result: object, job_type: str) -> None:
    """Refuse an awaitable as a result: what it stands for has not run."""
    if not inspect.isawaitable(result):
        return
    # Its `__class__` is that of a coroutine.
    if issubclass(type(result), AsyncCall):
        cast("AsyncCall", result).refuse_use()
    with contextlib.suppress(Exception):
        # Or Python warns that it was never awaited.
        end = getattr(result, "close", None) or getattr(result, "cancel", None)
        if end is not None:
            end()
    raise TypeError(
        f"handler {job_type!r} returned a {result.__class__.__name__}, not a result: is an await"
        " missing? A wrapper or middleware of an async function is an `async def` that awaits it"
    )
