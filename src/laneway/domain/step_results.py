"""What a function returns, as JSON and back: what is kept today is what a later attempt gets.

A type hint decides how it is read back, by the rules of `Arguments`; without one it is plain JSON.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

from laneway.domain.arguments import Arguments
from laneway.domain.payload import PayloadLimits, decode, encode
from laneway.domain.text import escape_text
from laneway.errors import InvalidInput

UNSAID: Final = inspect.Signature.empty
_NAME: Final = "result"
_PLACE: Final = f"payload.{_NAME}"
_AWAITED: Final = (collections.abc.Awaitable, collections.abc.Coroutine)


class StepResults:
    """The results of one function: written, and read back as its hint says."""

    __slots__ = ("_field", "_limits", "_shape")

    def __init__(self, field: str, hint: Any, limits: PayloadLimits) -> None:
        self._field = field
        self._limits = replace(limits, max_bytes=limits.step_bytes)
        self._shape = None
        if hint is not UNSAID:
            with _Named(field):
                self._shape = _shape(hint)

    @classmethod
    def of(
        cls, field: str, fn: Callable[..., Any], hint: Any, limits: PayloadLimits
    ) -> StepResults:
        """By the hint given, else by the one the function has."""
        return cls(field, _hint(field, fn) if hint is UNSAID else hint, limits)

    def encode(self, value: object) -> str:
        """JSON text that `decode` takes back, or InvalidInput that names the place."""
        if self._shape is not None:
            with _Named(self._field):
                value = self._shape.encode({_NAME: value})[_NAME]
        text = "null" if value is None else encode(value, limits=self._limits, field=self._field)
        # What cannot be read back must not be kept.
        self.decode(text)
        return text

    def decode(self, text: str) -> Any:
        """The value of a text that was kept, however large it was allowed to be then."""
        roomy = replace(self._limits, max_bytes=4 * len(text))
        value = decode(text, roomy, field=self._field)
        if self._shape is None:
            return value
        with _Named(self._field):
            return self._shape.validate({_NAME: value})[_NAME]


class _Named:
    """Names the function's result in errors that name the payload it is checked as."""

    __slots__ = ("_field",)

    def __init__(self, field: str) -> None:
        self._field = field

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InvalidInput):
            path = error.field.removeprefix(_PLACE) if error.field.startswith(_PLACE) else ""
            raise InvalidInput(f"{self._field}{path}", error.rule) from None


def _shape(hint: Any) -> Arguments:
    try:
        return _cached_shape(hint)
    except TypeError:
        # A hint that cannot be hashed.
        return Arguments(_NAME, {_NAME: hint}, {}, None)


@lru_cache(maxsize=512)
def _cached_shape(hint: Any) -> Arguments:
    return Arguments(_NAME, {_NAME: hint}, {}, None)


def _hint(field: str, fn: Callable[..., Any]) -> Any:
    """The return hint of a function, of what it awaits if it is one for that; UNSAID if none."""
    code: Any = fn
    while isinstance(code, partial):
        code = code.func
    if not inspect.isroutine(code) and not isinstance(code, type):
        code = type(code).__call__
    code = inspect.unwrap(code)
    code = getattr(code, "__func__", code)
    try:
        said = getattr(code, "__annotations__", {}).get("return", UNSAID)
        if said is UNSAID or isinstance(code, type):
            return UNSAID
        holder = types.SimpleNamespace(__annotations__={"return": said})
        hint = typing.get_type_hints(
            holder, globalns=getattr(code, "__globals__", {}), include_extras=True
        )["return"]
    except Exception as error:
        reason = escape_text(str(error))
        raise InvalidInput(
            field, f"its return hint cannot be resolved ({reason}): pass returns="
        ) from None
    if typing.get_origin(hint) in _AWAITED:
        return typing.get_args(hint)[-1]
    return hint
