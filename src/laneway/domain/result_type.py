"""Results of handlers and steps as JSON and back, by the return hint of their function.

A value that `encode` accepts is read back as the hint's type by `decode`, by the rules of
`Arguments`. Without a hint, a result has the types of JSON.
"""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn

from laneway.domain.payload import PayloadLimits, decode, encode
from laneway.domain.text import escape_text
from laneway.domain.type_hint import function_of, resolve_hint
from laneway.domain.unknown_values import NOT_AWAITED
from laneway.errors import InvalidInput, InvalidResult

if TYPE_CHECKING:
    from laneway.domain.arguments import Arguments

UNSET: Final = inspect.Signature.empty
_NAME: Final = "result"
_PLACE: Final = f"payload.{_NAME}"
_AWAITED: Final = (collections.abc.Awaitable, collections.abc.Coroutine)
# Hints that allow every JSON value, or say nothing about it: a handler that returns None may give
# its result to ctx.finish.
_OPEN_HINTS: Final = (UNSET, Any, object, Never, NoReturn, None, type(None))
_NOT_JSON: Final = "is not a JSON value"
_USABLE: Final = "return JSON values, a dataclass or a pydantic model"
_HINT_CHARS: Final = 100


class ResultType:
    """Encodes and decodes the results of one function by its return hint."""

    __slots__ = ("_hint", "_shape")

    def __init__(self, hint: Any = UNSET, field: str = _NAME) -> None:
        """Raises InvalidInput if the hint has no JSON form."""
        self._hint = hint
        self._shape: Arguments | None = None
        if not any(hint is one for one in _OPEN_HINTS):
            try:
                self._shape = _shape(hint)
            except InvalidInput as error:
                raise InvalidInput(field, f"{error.rule}; {_USABLE}") from None

    @classmethod
    def of(cls, fn: Callable[..., Any], hint: Any = UNSET, field: str = _NAME) -> ResultType:
        """The results of a function by the given hint, else by the function's own."""
        return cls(_hint(field, fn) if hint is UNSET else hint, field)

    def encode(self, value: object, limits: PayloadLimits, field: str = _NAME) -> str:
        """JSON text that `decode` accepts, or InvalidResult that names the place and the cure."""
        try:
            return self._encode(value, limits, field)
        except InvalidInput as error:
            raise InvalidResult(error.field, self._with_cure(error.rule)) from None

    def _encode(self, value: object, limits: PayloadLimits, field: str) -> str:
        shape = self._shape
        if shape is None:
            return "null" if value is None else encode(value, limits=limits, field=field)
        if shape.is_plain:
            try:
                text = encode(value, limits=limits, field=field)
                shape.validate({_NAME: value})
            except InvalidInput:
                # Only the slow way below accepts a tuple as a list, or a datetime in a dict.
                pass
            else:
                return text
        with _InField(field):
            plain = shape.encode({_NAME: value})[_NAME]
        text = "null" if plain is None else encode(plain, limits=limits, field=field)
        # A result that cannot be read back must not be stored.
        self.decode(text, limits, field)
        return text

    def decode(self, text: str, limits: PayloadLimits, field: str = _NAME) -> Any:
        """The value of a stored text, even if the limits are smaller now."""
        value = decode(text, replace(limits, max_bytes=4 * len(text)), field=field)
        if self._shape is None:
            return value
        with _InField(field):
            return self._shape.validate({_NAME: value})[_NAME]

    def _with_cure(self, rule: str) -> str:
        if rule.endswith(NOT_AWAITED):
            return rule
        # A function returns what a submit sends.
        rule = rule.replace("; send ", "; return ")
        if self._shape is not None:
            return f"{rule}; the return hint is {_shown(self._hint)}"
        if rule.endswith(_NOT_JSON):
            return f"{rule}; return JSON values, or declare the return type"
        return f"{rule}, or declare the return type" if _NOT_JSON in rule else rule


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


def _shown(hint: Any) -> str:
    text = hint.__qualname__ if isinstance(hint, type) and not typing.get_args(hint) else repr(hint)
    return escape_text(text)[:_HINT_CHARS]


def _shape(hint: Any) -> Arguments:
    try:
        return _cached_shape(hint)
    except TypeError:
        # A hint that cannot be hashed.
        return _make_shape(hint)


@lru_cache(maxsize=512)
def _cached_shape(hint: Any) -> Arguments:
    return _make_shape(hint)


def _make_shape(hint: Any) -> Arguments:
    # Pydantic, which it needs, takes a quarter of the time to import Laneway.
    from laneway.domain.arguments import Arguments

    return Arguments(_NAME, {_NAME: hint}, {}, None)


def _hint(field: str, fn: Callable[..., Any]) -> Any:
    """The return hint of a function, of the awaited value for coroutines; UNSET if none."""
    code = function_of(fn)
    written = getattr(code, "__annotations__", {}).get("return", UNSET)
    if written is UNSET or isinstance(code, type):
        return UNSET
    try:
        hint = resolve_hint(code, written)
    except Exception as error:
        reason = escape_text(str(error))
        cure = "import its types at module level" + (", or pass returns=" * (field != _NAME))
        raise InvalidInput(
            field, f"its return hint cannot be resolved ({reason}): {cure}"
        ) from None
    if typing.get_origin(hint) in _AWAITED:
        return typing.get_args(hint)[-1]
    return hint
