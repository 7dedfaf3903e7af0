"""Results of steps as JSON and back, so that a later attempt gets the same value.

A type hint decides how a result is read back, by the rules of `Arguments`; otherwise it is JSON.
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

UNSET: Final = inspect.Signature.empty
_NAME: Final = "result"
_PLACE: Final = f"payload.{_NAME}"
_AWAITED: Final = (collections.abc.Awaitable, collections.abc.Coroutine)


class StepResults:
    """Encodes and decodes the results of one function by its return hint."""

    __slots__ = ("_field", "_limits", "_shape")

    def __init__(self, field: str, hint: Any, limits: PayloadLimits) -> None:
        self._field = field
        self._limits = replace(limits, max_bytes=limits.step_bytes)
        self._shape = None
        if hint is not UNSET:
            with _InField(field):
                self._shape = _shape(hint)

    @classmethod
    def of(
        cls, field: str, fn: Callable[..., Any], hint: Any, limits: PayloadLimits
    ) -> StepResults:
        """Results by the given hint, else by the function's own."""
        return cls(field, _hint(field, fn) if hint is UNSET else hint, limits)

    def encode(self, value: object) -> str:
        """JSON text that `decode` accepts, or InvalidInput that names the place."""
        if self._shape is not None:
            with _InField(self._field):
                value = self._shape.encode({_NAME: value})[_NAME]
        text = "null" if value is None else encode(value, limits=self._limits, field=self._field)
        # A result that cannot be read back must not be stored.
        self.decode(text)
        return text

    def decode(self, text: str) -> Any:
        """The value of a stored text, even if the limits are smaller now."""
        unlimited = replace(self._limits, max_bytes=4 * len(text))
        value = decode(text, unlimited, field=self._field)
        if self._shape is None:
            return value
        with _InField(self._field):
            return self._shape.validate({_NAME: value})[_NAME]


class _InField:
    """Replaces the field of InvalidInput, which names a payload, by the field of the result."""

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
    """The return hint of a function, of the awaited value for coroutines; UNSET if none."""
    code: Any = fn
    while isinstance(code, partial):
        code = code.func
    if not inspect.isroutine(code) and not isinstance(code, type):
        code = type(code).__call__
    code = inspect.unwrap(code)
    code = getattr(code, "__func__", code)
    try:
        written = getattr(code, "__annotations__", {}).get("return", UNSET)
        if written is UNSET or isinstance(code, type):
            return UNSET
        holder = types.SimpleNamespace(__annotations__={"return": written})
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
