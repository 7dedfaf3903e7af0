"""The arguments of a handler as pydantic and as JSON Schema see them, made from their hints.

Handlers with equal hints share both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NotRequired

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from laneway.domain.payload_check import RULE_CHARS
from laneway.errors import InvalidInput

_CONFIG: Final = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    arbitrary_types_allowed=False,
    # Infinity and NaN stay, so that encoding the payload refuses them instead of sending null.
    ser_json_inf_nan="constants",
)
_OPEN_CONFIG: Final = ConfigDict(**{**_CONFIG, "extra": "allow"})

# Made at run time from a signature, which type checkers do not support.
_typed_dict: Any = TypedDict


Adapter = TypeAdapter[dict[str, object]]
# Each argument: name, hint, its repr (because 1 equals True), whether it has a default.
Shape = tuple[tuple[str, Any, str, bool], ...]


def make_adapter(shape: Shape, rest: Any, _written: str) -> Adapter:
    # A TypedDict validates into keyword arguments and, unlike a model, takes any name.
    keys = {key: NotRequired[hint] if has_default else hint for key, hint, _, has_default in shape}
    made = _typed_dict("Arguments", keys, **({} if rest is None else {"extra_items": rest}))
    made.__pydantic_config__ = _CONFIG if rest is None else _OPEN_CONFIG
    return TypeAdapter(made)


shared_adapter = lru_cache(maxsize=1024)(make_adapter)


def schema_of(name: str, shape: Shape, rest: Any) -> dict[str, Any]:
    """The JSON Schema of arguments; InvalidInput if a hint has none."""
    parts: dict[str, dict[str, Any]] = {}
    try:
        for key, hint, written, _ in shape:
            part = _argument_schema(hint, written)
            if part is None:
                return _whole_schema(shape, rest)
            is_titled = part.get("title") == _ANY_TITLE
            parts[key] = {**part, "title": _title(key)} if is_titled else part
        if rest is not None:
            return _whole_schema(shape, rest)
    except Exception as error:
        culprit = next((key for key, hint, _, _ in shape if not _is_jsonable(hint)), "**")
        reason = str(error).splitlines()[0][:RULE_CHARS]
        raise InvalidInput(f"{name}({culprit})", f"its type has no JSON form: {reason}") from None
    schema: dict[str, Any] = {"additionalProperties": False, "properties": parts, "type": "object"}
    required = [key for key, _, _, has_default in shape if not has_default]
    return {**schema, "required": required} if required else schema


def _whole_schema(shape: Shape, rest: Any) -> dict[str, Any]:
    return make_adapter(shape, rest, "").json_schema(schema_generator=_SchemaGenerator)


_ANY_NAME: Final = "laneway_argument"
_ANY_TITLE: Final = "Laneway Argument"


def _title(name: str) -> str:
    """The title that pydantic gives a field."""
    return name.title().replace("_", " ").strip()


def _argument_schema(hint: Any, written: str) -> dict[str, Any] | None:
    """The schema of one argument, shared by all handlers; None if it needs definitions."""
    make = _shared_argument_schema if is_hashable(hint) else _make_argument_schema
    return make(hint, written)


def _make_argument_schema(hint: Any, written: str) -> dict[str, Any] | None:
    whole = _whole_schema(((_ANY_NAME, hint, written, False),), None)
    # An alias has another name.
    return None if "$defs" in whole else whole["properties"].get(_ANY_NAME)


_shared_argument_schema = lru_cache(maxsize=1024)(_make_argument_schema)


def is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_jsonable(hint: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema()
    except Exception:
        return False
    return True


class _SchemaGenerator(GenerateJsonSchema):
    """Schemas that state only what validation enforces: a set takes repeated items."""

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        shown = super().set_schema(schema)
        shown.pop("uniqueItems", None)
        return shown

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        shown = super().frozenset_schema(schema)
        shown.pop("uniqueItems", None)
        return shown
