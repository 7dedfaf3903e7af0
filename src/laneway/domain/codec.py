"""Dataclasses of the domain as JSON values, and back; every door uses the same.

A dataclass shows its fields under their own names, then the properties that its class attribute
`computed` lists. `INLINE` and `HIDDEN` are the exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID

from laneway.domain.annotations import HIDDEN, INLINE, non_null, unwrap


class JsonField(NamedTuple):
    """One JSON field of a dataclass, with its type; computed ones are never read back."""

    name: str
    hint: Any
    is_computed: bool = False
    is_inline: bool = False
    is_required: bool = True


class UnreadableJson(ValueError):
    """JSON that does not have the shape of its type; names the place."""


@cache
def json_fields(kind: Any) -> tuple[JsonField, ...]:
    """The JSON fields of a dataclass, in order."""
    hints = get_type_hints(kind, include_extras=True)
    own = [
        JsonField(
            each.name,
            hints[each.name],
            is_inline=INLINE in unwrap(hints[each.name])[1],
            is_required=each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
        if HIDDEN not in unwrap(hints[each.name])[1]
    ]
    names: tuple[str, ...] = getattr(kind, "computed", ())
    return (*own, *(JsonField(name, _returned(kind, name), is_computed=True) for name in names))


def _returned(kind: Any, name: str) -> Any:
    return get_type_hints(getattr(kind, name).fget, include_extras=True)["return"]


def to_json(value: Any) -> Any:
    """The value as JSON; mappings are JSON already."""
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, UUID) else value


def _object(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    shown: dict[str, Any] = {}
    for name, hint, _, is_inline, _ in json_fields(kind):
        found = getattr(value, name)
        if is_inline:
            shown.update(_object(found))
        elif mapped_class(unwrap(hint)[0]) is not None:
            shown[name] = {key: to_json(each) for key, each in found.items()}
        else:
            shown[name] = to_json(found)
    return shown


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
    for name, hint, is_computed, is_inline, is_required in json_fields(kind):
        where = f"{place}.{name}".lstrip(".")
        if is_inline:
            given[name] = from_json(hint, value, place)
        elif name in value and not is_computed:
            given[name] = from_json(hint, value[name], where)
        elif is_required and not is_computed:
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
