"""Wrong calls of `ctx` as InvalidInput, which a handler does not retry.

Its signatures reject a call, or an async one is dropped without `await`.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from types import CoroutineType
from typing import Any, Final, NoReturn, ParamSpec, Protocol, TypeVar, cast

from laneway.errors import InvalidInput

P = ParamSpec("P")
R = TypeVar("R")


class NotesDroppedCalls(Protocol):
    """The context of a handler."""

    def note_dropped(self, name: str, form: str) -> None: ...


class AsyncCall(Coroutine[Any, Any, Any]):
    """A call of an async method of `ctx`, which learns of it if it is dropped without `await`.

    A coroutine itself does not tell at its end whether it was started.
    """

    __slots__ = ("_ctx", "_form", "_is_used", "_work")

    def __init__(
        self, ctx: NotesDroppedCalls, work: CoroutineType[Any, Any, Any], form: str
    ) -> None:
        self._ctx, self._work, self._form, self._is_used = ctx, work, form, False

    # Libraries such as older anyio start only what `inspect.iscoroutine` accepts.
    __class__ = property(lambda self: CoroutineType)

    def __await__(self) -> Generator[Any, Any, Any]:
        self._is_used = True
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """As a task starts and continues it."""
        self._is_used = True
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """As a task cancels it, also before its start."""
        self._is_used = True
        return self._work.throw(*error)

    def close(self) -> None:
        """Drop it on purpose."""
        self._is_used = True
        self._work.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or hasattr(self._work, name):
            return getattr(self._work, name)
        raise _UnawaitedAttribute(*self._problem)

    # It has no `__iter__`: `for` calls `__getitem__`, and it must not be seen as an iterable.
    def __bool__(self) -> bool:
        return True

    def refuse_use(self) -> NoReturn:
        """Raise the error of a handler that uses the call in place of its result."""
        self.close()
        raise InvalidInput(*self._problem)

    @property
    def _problem(self) -> tuple[str, str]:
        return not_awaited(self._work.__name__, self._form)

    def __del__(self) -> None:
        if not self._is_used:
            self._ctx.note_dropped(self._work.__name__, self._form)


def not_awaited(name: str, form: str) -> tuple[str, str]:
    """The field and the rule of a call without `await`."""
    return f"ctx.{name}", f"was called without await: write await {form}"


class _UnawaitedAttribute(InvalidInput, AttributeError):
    """An attribute of a call without `await`; `hasattr` is False."""


# What is stored as the type of the job's error.
_UnawaitedAttribute.__name__ = _UnawaitedAttribute.__qualname__ = InvalidInput.__name__


def _refuse_operator(self: AsyncCall, *_operands: object) -> NoReturn:
    self.refuse_use()


# What handlers do with results, and coroutines do not have.
_OPERATORS: Final = (
    *("getitem", "setitem", "delitem", "len", "int", "float", "index", "round"),
    *("lt", "le", "gt", "ge", "neg", "add", "radd", "sub", "rsub", "mul", "rmul", "mod", "rmod"),
    *("truediv", "rtruediv", "floordiv", "rfloordiv", "or", "ror", "and", "rand"),
)
for _operator in _OPERATORS:
    setattr(AsyncCall, f"__{_operator}__", _refuse_operator)


def checked_call(form: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a method of `ctx` refuse wrong calls by name; the error ends with the right form."""

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(fn):

            @wraps(fn)
            def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                try:
                    work: Any = fn(*args, **kwargs)
                except TypeError as error:
                    raise _refused(fn, error, form, args, kwargs) from None
                return AsyncCall(cast("NotesDroppedCalls", args[0]), work, form)

            _mark_async(call_async)
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


def _mark_async(fn: Any) -> None:
    """Let mocks of `ctx` see that the function is awaited."""
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(fn)
    else:
        fn._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]


def _refused(
    fn: Callable[..., object], error: TypeError, form: str, args: Any, kwargs: Any
) -> InvalidInput:
    rule = str(error)
    try:
        inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as precise:
        rule = str(precise)
    return InvalidInput(f"ctx.{fn.__name__}", f"{rule}: write {form}")
