"""Calls of `ctx` that its signatures reject, as InvalidInput, which a handler does not retry."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from laneway.errors import InvalidInput

P = ParamSpec("P")
R = TypeVar("R")


def checked_call(form: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a method of `ctx` refuse wrong arguments by name; the error ends with the right form."""

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(fn):

            @wraps(fn)
            async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                try:
                    work = cast("Awaitable[Any]", fn(*args, **kwargs))
                except TypeError as error:
                    raise _refused(fn, error, form, args, kwargs) from None
                return await work

            return cast("Callable[P, R]", call_async)

        @wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return fn(*args, **kwargs)
            except TypeError as error:
                # Deeper in the traceback, the method itself or what it called raised.
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise
                raise _refused(fn, error, form, args, kwargs) from None

        return call

    return decorate


def _refused(
    fn: Callable[..., object], error: TypeError, form: str, args: Any, kwargs: Any
) -> InvalidInput:
    rule = str(error)
    try:
        inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as precise:
        rule = str(precise)
    return InvalidInput(f"ctx.{fn.__name__}", f"{rule}: write {form}")
