"""Dataclasses of the domain as JSON values, and back; every door uses the same.

A dataclass shows its fields under their own names, then the properties that its class attribute
`computed` lists; `computed_after` has a property by the field that it follows. The marks of
`annotations` are the exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache, partial
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID

from laneway.domain.annotations import (
    HIDDEN,
    IF_TRUE,
    INLINE,
    PRIVATE,
    non_null,
    unwrap,
)

# Types whose values are JSON already.
_PLAIN: Final = (str, int, float, bool, object)


class JsonField(NamedTuple):
    """One JSON field of a dataclass, with its type; computed ones are never read back."""

    name: str
    hint: Any
    is_computed: bool = False
    is_required: bool = True

    @property
    def marks(self) -> tuple[Any, ...]:
        return unwrap(self.hint)[1]

    @property
    def is_inline(self) -> bool:
        return INLINE in self.marks

    @property
    def may_be_absent(self) -> bool:
        """Whether JSON may leave it out."""
        return PRIVATE in self.marks or IF_TRUE in self.marks


class UnreadableJson(ValueError):
    """JSON that does not have the shape of its type; names the place."""


@cache
def json_fields(kind: Any) -> tuple[JsonField, ...]:
    """The JSON fields of a dataclass, in order."""
    return tuple(_fields(kind))


def _fields(kind: Any) -> Iterator[JsonField]:
    hints = get_type_hints(kind, include_extras=True)
    after: Mapping[str, str] = getattr(kind, "computed_after", {})
    for each in fields(kind):
        if HIDDEN not in unwrap(hints[each.name])[1]:
            is_required = each.default is MISSING and each.default_factory is MISSING
            yield JsonField(each.name, hints[each.name], is_required=is_required)
        if each.name in after:
            yield _computed(kind, after[each.name])
    for name in getattr(kind, "computed", ()):
        yield _computed(kind, name)


def _computed(kind: Any, name: str) -> JsonField:
    hint = get_type_hints(getattr(kind, name).fget, include_extras=True)["return"]
    return JsonField(name, hint, is_computed=True)


def to_json(value: Any, *, private: bool = True) -> Any:
    """The value as JSON; mappings are JSON already. `private=False` leaves out private fields."""
    if is_dataclass(value):
        return _object(value, private)
    if isinstance(value, (list, tuple)):
        return [to_json(each, private=private) for each in value]
    if isinstance(value, datetime):
        return json_time(value)
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, UUID) else value


def json_time(at: datetime) -> str:
    """A time in UTC, with `Z`."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _object(value: Any, private: bool) -> dict[str, Any]:
    kind: Any = type(value)
    shown: dict[str, Any] = {}
    for name, write, is_inline, is_if_true in _members(kind, private):
        found = getattr(value, name)
        if is_inline:
            shown.update(_object(found, private))
        elif write is not None and found is not None:
            shown[name] = write(found)
        elif found or not is_if_true:
            shown[name] = found
    return shown


@cache
def _members(kind: Any, private: bool) -> tuple[_Member, ...]:
    return tuple(
        _Member(each.name, _writer(each.hint, private), each.is_inline, IF_TRUE in each.marks)
        for each in json_fields(kind)
        if private or PRIVATE not in each.marks
    )


class _Member(NamedTuple):
    """The encoding of a field; without `write`, the value is JSON already."""

    name: str
    write: Callable[[Any], Any] | None
    is_inline: bool
    is_if_true: bool


def _writer(hint: Any, private: bool) -> Callable[[Any], Any] | None:
    kind, _ = unwrap(hint)
    if (inner := non_null(kind)) is not None:
        kind, _ = unwrap(inner)
    if kind in _PLAIN:
        return None
    if kind is UUID:
        return str
    if kind is datetime:
        return json_time
    if get_origin(kind) in (list, tuple) and get_args(kind)[0] in _PLAIN:
        return list
    if mapped_class(kind) is not None:
        return lambda found: {key: to_json(each) for key, each in found.items()}
    return partial(to_json, private=private)


def mapped_class(kind: Any) -> Any:
    """The dataclass of the values of a `dict[str, X]`; None for any other type."""
    inner = get_args(kind)[1] if get_origin(kind) is dict else None
    return inner if is_dataclass(inner) else None


def from_json(hint: Any, value: Any, place: str = "") -> Any:
    """The value of a type; ranges are not checked, and unknown fields are left out."""
    kind, _ = unwrap(hint)
    if (inner := non_null(kind)) is not None:
        return None if value is None else from_json(inner, value, place)
    if is_dataclass(kind):
        return _read_object(kind, value, place)
    origin = get_origin(kind)
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise UnreadableJson(f"{place}: must be a list")
        item = get_args(kind)[0]
        return origin(from_json(item, each, f"{place}[{i}]") for i, each in enumerate(value))
    if (inner := mapped_class(kind)) is not None:
        return {key: _read_object(inner, each, f"{place}.{key}") for key, each in value.items()}
    return _read_plain(kind, value, place)


def _read_object(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise UnreadableJson(f"{place}: must be an object")
    given: dict[str, Any] = {}
    for each in json_fields(kind):
        name, hint = each.name, each.hint
        where = f"{place}.{name}".lstrip(".")
        if each.is_inline:
            given[name] = from_json(hint, value, place)
        elif each.is_computed or (each.may_be_absent and value.get(name) is None):
            continue
        elif name in value:
            given[name] = from_json(hint, value[name], where)
        elif each.is_required:
            raise UnreadableJson(f"{where}: is missing")
    return kind(**given)


def _read_plain(kind: Any, value: Any, place: str) -> Any:
    try:
        if kind is datetime:
            return datetime.fromisoformat(value)
        if kind is UUID or (isinstance(kind, type) and issubclass(kind, Enum)):
            return kind(value)
    except (TypeError, ValueError) as error:
        raise UnreadableJson(f"{place}: {error}") from None
    expected = (int, float) if kind is float else kind
    if kind in (bool, int, float, str) and not (
        isinstance(value, expected) and isinstance(value, bool) == (kind is bool)
    ):
        raise UnreadableJson(f"{place}: must be {kind.__name__}, not {type(value).__name__}")
    return value
