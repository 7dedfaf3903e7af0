"""JSON Schemas that workers publish, checked on arrival.

A schema is untrusted input. `$ref` may lead into `#/$defs` only, and the parts that apply to one
value are counted with references expanded. `payload_check.py` checks payloads by them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from laneway.errors import InvalidInput

MAX_BYTES: Final = 64 * 1024
# Parts of a schema that apply to one value, references expanded.
MAX_PARTS: Final = 1_000
_DEEPEST: Final = 100
CACHED_BYTES: Final = 1024 * 1024

TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    # 5.0 is an integer in JSON Schema but not for a handler's `int`: both must agree.
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = (
    *("not", "if", "then", "else", "items", "contains", "additionalProperties"),
    "propertyNames",
)
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "$defs")
# Keywords that apply to the value itself, not to its items or members.
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_FOREIGN: Final = frozenset(
    {
        *("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"),
        *("$vocabulary", "definitions"),
    }
)
SIZES: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_COUNTS: Final = (*SIZES, "minContains", "maxContains")
NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(name, str) and name in TYPES for name in names)


# The form that the value of a keyword must have.
_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys((*_LISTS, "enum"), lambda value: isinstance(value, list)),
    **dict.fromkeys(_NAMED, lambda value: isinstance(value, dict)),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(NUMBERS, TYPES["number"]),
    "multipleOf": lambda value: TYPES["number"](value) and value > 0,
    "type": _is_type,
    "required": _is_names,
    "pattern": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "dependentRequired": lambda value: (
        isinstance(value, dict) and all(map(_is_names, value.values()))
    ),
}


class _Cache:
    """Checked schemas by their text; drops the least recently used, bounded in bytes."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._size = 0

    def get(self, text: str) -> Mapping[str, Any] | None:
        found = self._found.get(text)
        if found is not None:
            self._found.move_to_end(text)
        return found

    def put(self, text: str, schema: Mapping[str, Any]) -> None:
        self._found[text] = schema
        self._size += len(text)
        while self._size > CACHED_BYTES:
            oldest, _ = self._found.popitem(last=False)
            self._size -= len(oldest)

    def __len__(self) -> int:
        return len(self._found)


cache: Final = _Cache()


def read(text: str) -> Mapping[str, Any]:
    """The checked schema of a JSON text; InvalidInput names the rule that it breaks."""
    found = cache.get(text)
    if found is None:
        size = len(text.encode())
        if size > MAX_BYTES:
            raise InvalidInput("schema", f"takes {size} bytes; at most {MAX_BYTES}")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidInput("schema", "must be JSON") from None
        _Rules(found).check()
        cache.put(text, found)
    return found


class _Rules:
    """The rules that a schema must meet before payloads are checked by it."""

    def __init__(self, root: Any) -> None:
        if not isinstance(root, dict):
            raise InvalidInput("schema", "must be a JSON object")
        self._root = root
        self._defs = root.get("$defs", {})
        # Parts that apply to one value, by the name of a definition; None: being counted.
        self._parts: dict[str, int | None] = {}

    def check(self) -> None:
        # Check everything first: counting follows references.
        found = list(self._check(self._root, 0))
        for schema in found:
            self._count(schema)

    def _check(self, schema: Any, depth: int) -> Iterator[Any]:
        """Yield the parts that apply to another value than the part around them."""
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise InvalidInput(
                "schema", "is not a JSON Schema: a part is neither object nor boolean"
            )
        if depth > _DEEPEST:
            raise InvalidInput("schema", f"is nested deeper than {_DEEPEST}")
        if depth == 0:
            yield schema
        for key, value in schema.items():
            self._check_keyword(key, value)
            if key == "$defs" and schema is not self._root:
                raise InvalidInput("schema", "has $defs outside its root")
            for part in _parts(key, value):
                if key not in _IN_PLACE:
                    yield part
                yield from self._check(part, depth + 1)

    def _check_keyword(self, key: str, value: Any) -> None:
        if key in _FOREIGN:
            raise InvalidInput(
                "schema", f"uses {key}: define parts in $defs, refer to them by $ref"
            )
        if key == "$ref":
            if definition_of(value) not in self._defs:
                raise InvalidInput("schema", "has a $ref that is not into its own #/$defs/…")
            return
        is_right = _FORMS.get(key)
        if is_right is not None and not is_right(value):
            raise InvalidInput(
                "schema", f"is not a JSON Schema: the value of {key} has the wrong form"
            )

    def _count_of(self, name: str) -> int:
        if name in self._parts:
            found = self._parts[name]
            if found is None:
                raise InvalidInput("schema", f"has a $ref to {name} that leads to itself")
            return found
        self._parts[name] = None
        self._parts[name] = found = self._count(self._defs[name])
        return found

    def _count(self, schema: Any) -> int:
        """The number of parts that apply to one value, references expanded."""
        if not isinstance(schema, dict):
            return 1
        parts = 1
        if "$ref" in schema:
            parts += self._count_of(definition_of(schema["$ref"]))
        for key in _IN_PLACE:
            if key in schema:
                parts += sum(map(self._count, _parts(key, schema[key])))
        if parts > MAX_PARTS:
            raise InvalidInput(
                "schema", f"applies more than {MAX_PARTS} parts to one value, references expanded"
            )
        return parts


def _parts(key: str, value: Any) -> list[Any]:
    """The schemas below a keyword."""
    if key in _LISTS:
        return list(value)
    if key in _NAMED:
        return list(value.values())
    return [value] if key in _SINGLE else []


def definition_of(reference: Any) -> str:
    """The name in `$defs` that a reference leads to; empty if it leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return ""
    name = reference.removeprefix("#/$defs/")
    return "" if "/" in name else name.replace("~1", "/").replace("~0", "~")
