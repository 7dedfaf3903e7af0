"""JSON Schemas that workers publish: checked when they come in, and bounded when they are used.

A schema is input like any other. `$ref` leads into `#/$defs` only, parts that apply to one value
are counted with references expanded, and checking a payload takes a bounded number of steps.
Keywords that are not known here are left to the handler, which checks its arguments again.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from laneway.domain.text import escape_text
from laneway.errors import InvalidInput

MOST_BYTES: Final = 64 * 1024
# Parts of a schema that are asked about one value, references expanded.
MOST_PARTS: Final = 1_000
# Of checking one payload; the rest of a larger one is left to the handler.
MOST_STEPS: Final = 100_000
MOST_ERRORS: Final = 100
RULE_CHARS: Final = 300
REQUIRED: Final = "is required"
UNKNOWN: Final = "is not an argument of this job type"
_DEEPEST: Final = 100
_PATTERN_CHARS: Final = 1_000
CACHED_BYTES: Final = 1024 * 1024

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    # 5.0 is an integer to JSON Schema but not to a handler's `int`: the doors must agree.
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
# Those that are asked about the value itself, not about what is in it.
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_FOREIGN: Final = frozenset(
    {
        *("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"),
        *("$vocabulary", "definitions"),
    }
)
_SIZES: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_SIZED: Final[dict[str, type[Any]]] = {"Length": str, "Items": list, "Properties": dict}
_COUNTS: Final = (*_SIZES, "minContains", "maxContains")
_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(one, str) and one in _TYPES for one in names)


# What the value of a keyword must be.
_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys((*_LISTS, "enum"), lambda value: isinstance(value, list)),
    **dict.fromkeys(_NAMED, lambda value: isinstance(value, dict)),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_NUMBERS, _TYPES["number"]),
    "multipleOf": lambda value: _TYPES["number"](value) and value > 0,
    "type": _is_type,
    "required": _is_names,
    "pattern": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "dependentRequired": lambda value: (
        isinstance(value, dict) and all(map(_is_names, value.values()))
    ),
}
_RULES: Final = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must be at least {} characters long",
    "maxLength": "must be at most {} characters long",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "pattern": "must match the pattern {}",
    "enum": "must be one of {}",
    "const": "must be {}",
    "type": "must be of type {}",
}

Path = tuple[str | int, ...]


class Problem(NamedTuple):
    """A place in a payload, and the keyword that does not hold there; of a choice, all of it."""

    path: Path
    key: str
    wanted: Any

    @property
    def rule(self) -> str:
        """For people; made when it is shown, for most are not."""
        if self.key == "":
            return "is not allowed"
        if self.key == "required":
            return REQUIRED
        if self.key == "additionalProperties":
            return UNKNOWN
        if self.key in ("anyOf", "oneOf") and isinstance(self.wanted[0], Problem):
            return " or ".join(dict.fromkeys(one.rule for one in self.wanted))[:RULE_CHARS]
        shown = json.dumps(self.wanted, ensure_ascii=False)[:RULE_CHARS]
        template = _RULES.get(self.key, f"must satisfy {self.key} {{}}")
        return escape_text(template.format(shown))[:RULE_CHARS]


class _SpentError(Exception):
    """All steps are used up."""


class _Cache:
    """Schemas that were checked, by their text; the last used stay, up to a number of bytes."""

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
    """The schema of a JSON text, checked; InvalidInput names the rule that it breaks."""
    found = cache.get(text)
    if found is None:
        size = len(text.encode())
        if size > MOST_BYTES:
            raise InvalidInput("schema", f"takes {size} bytes; at most {MOST_BYTES}")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidInput("schema", "must be JSON") from None
        _Rules(found).check()
        cache.put(text, found)
    return found


def problems(schema: Mapping[str, Any], payload: object) -> list[Problem]:
    """What is wrong with a payload by a schema that was `read`; the first 100."""
    found: list[Problem] = []
    # What was found until all steps were used up is wrong all the same.
    with suppress(_SpentError):
        Check(schema).visit(schema, payload, (), found)
    return found[:MOST_ERRORS]


class _Rules:
    """What a schema must keep to before anything is checked by it."""

    def __init__(self, root: Any) -> None:
        if not isinstance(root, dict):
            raise InvalidInput("schema", "must be a JSON object")
        self._root = root
        self._defs = root.get("$defs", {})
        # Parts asked about one value, by the name of a definition; None: being counted.
        self._parts: dict[str, int | None] = {}

    def check(self) -> None:
        # All of it before anything is counted, which follows references.
        found = list(self._check(self._root, 0))
        for schema in found:
            self._count(schema)

    def _check(self, schema: Any, depth: int) -> Iterator[Any]:
        """Yields the parts that are asked about a value of their own."""
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise InvalidInput("schema", "is no JSON Schema: a part is neither object nor boolean")
        if depth > _DEEPEST:
            raise InvalidInput("schema", f"is nested deeper than {_DEEPEST}")
        if depth == 0:
            yield schema
        for key, value in schema.items():
            self._check_keyword(key, value)
            if key == "$defs" and schema is not self._root:
                raise InvalidInput("schema", "has $defs elsewhere than at its root")
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
            raise InvalidInput("schema", f"is no JSON Schema: {key} is not as it must be")

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
        """How many parts are asked about one value, references expanded."""
        if not isinstance(schema, dict):
            return 1
        parts = 1
        if "$ref" in schema:
            parts += self._count_of(definition_of(schema["$ref"]))
        for key in _IN_PLACE:
            if key in schema:
                parts += sum(map(self._count, _parts(key, schema[key])))
        if parts > MOST_PARTS:
            raise InvalidInput(
                "schema", f"asks more than {MOST_PARTS} parts about one value, references expanded"
            )
        return parts


def _parts(key: str, value: Any) -> list[Any]:
    """The schemas that stand under a keyword."""
    if key in _LISTS:
        return list(value)
    if key in _NAMED:
        return list(value.values())
    return [value] if key in _SINGLE else []


def definition_of(reference: Any) -> str:
    """The name in `$defs` that a reference leads to; empty: it leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return ""
    name = reference.removeprefix("#/$defs/")
    return "" if "/" in name else name.replace("~1", "/").replace("~0", "~")


class Check:
    """One payload, checked in a bounded number of steps."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._defs = root.get("$defs", {})
        self._left = MOST_STEPS
        # What enum and const allow, by the schema that they stand in.
        self._keys: dict[tuple[int, str], frozenset[Any]] = {}

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _SpentError

    def visit(self, schema: Any, value: Any, path: Path, into: list[Problem]) -> None:
        """Add what is wrong with a value; only so much is kept."""
        if isinstance(schema, bool):
            self.spend(1)
            if not schema:
                into.append(Problem(path, "", None))
            return
        self.spend(1 + len(schema))
        for key, wanted in schema.items():
            ask = _KEYWORDS.get(key)
            if ask is not None and len(into) < MOST_ERRORS:
                ask(self, _Place(schema, key, wanted, path, into), value)

    def holds(self, schema: Any, value: Any) -> bool:
        found: list[Problem] = []
        self.visit(schema, value, (), found)
        return not found

    def definition(self, reference: str) -> Any:
        return self._defs[definition_of(reference)]

    def allowed(self, schema: Any, key: str) -> frozenset[Any]:
        found = self._keys.get((id(schema), key))
        if found is None:
            values = schema[key] if key == "enum" else [schema[key]]
            found = self._keys[id(schema), key] = frozenset(map(self.key, values))
        return found

    def key(self, value: Any) -> Any:
        """Equal for values that JSON takes for equal: 1 and 1.0, but not 1 and true."""
        self.spend(1)
        if isinstance(value, bool):
            return value, "boolean"
        if isinstance(value, list):
            return "array", tuple(map(self.key, value))
        if isinstance(value, dict):
            return "object", frozenset((name, self.key(one)) for name, one in value.items())
        return value


class _Place(NamedTuple):
    """A keyword of a schema, where in the payload it is asked, and where problems go."""

    schema: Any
    key: str
    wanted: Any
    path: Path
    into: list[Problem]

    def refuse(self, *names: str) -> None:
        """The keyword does not hold, for the value or for what is named in it."""
        self.into.append(Problem((*self.path, *names), self.key, self.wanted))


def _ask_reference(check: Check, at: _Place, value: Any) -> None:
    check.visit(check.definition(at.wanted), value, at.path, at.into)


def _ask_type(check: Check, at: _Place, value: Any) -> None:
    names = at.wanted if isinstance(at.wanted, list) else [at.wanted]
    if not any(_TYPES[name](value) for name in names):
        at.refuse()


def _ask_choice(check: Check, at: _Place, value: Any) -> None:
    if check.key(value) not in check.allowed(at.schema, at.key):
        at.refuse()


def _ask_number(check: Check, at: _Place, value: Any) -> None:
    if _TYPES["number"](value) and not _compares(at.key, value, at.wanted):
        at.refuse()


def _ask_size(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, _SIZED[at.key[3:]]):
        size = len(value)
        if size < at.wanted if at.key.startswith("min") else size > at.wanted:
            at.refuse()


def _ask_pattern(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, str):
        check.spend(len(value) // 100)
        if not _matches(at.wanted, value):
            at.refuse()


def _ask_unique(check: Check, at: _Place, value: Any) -> None:
    is_asked = at.wanted and isinstance(value, list)
    if is_asked and len({check.key(one) for one in value}) < len(value):
        at.refuse()


def _ask_items(check: Check, at: _Place, value: Any) -> None:
    if not isinstance(value, list):
        return
    if at.key == "prefixItems":
        for n, (part, one) in enumerate(zip(at.wanted, value, strict=False)):
            check.visit(part, one, (*at.path, n), at.into)
        return
    for n in range(len(at.schema.get("prefixItems", ())), len(value)):
        check.visit(at.wanted, value[n], (*at.path, n), at.into)


def _ask_contains(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, list):
        count = sum(check.holds(at.wanted, one) for one in value)
        least = at.schema.get("minContains", 1)
        if not least <= count <= at.schema.get("maxContains", len(value)):
            at.refuse()


def _ask_required(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, dict):
        check.spend(len(at.wanted))
        for name in at.wanted:
            if name not in value:
                at.refuse(name)


def _ask_dependents(check: Check, at: _Place, value: Any) -> None:
    if not isinstance(value, dict):
        return
    check.spend(len(at.wanted))
    for name, needed in at.wanted.items():
        if name not in value:
            continue
        if at.key == "dependentSchemas":
            check.visit(needed, value, at.path, at.into)
        else:
            _ask_required(check, at._replace(key="required", wanted=needed), value)


def _ask_properties(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, dict):
        small, large = sorted((at.wanted, value), key=len)
        check.spend(len(small))
        for name in small:
            if name in large:
                check.visit(at.wanted[name], value[name], (*at.path, name), at.into)


def _ask_pattern_properties(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, dict):
        check.spend(len(value) * len(at.wanted))
        for pattern, part in at.wanted.items():
            for name, one in value.items():
                if _matches(pattern, name):
                    check.visit(part, one, (*at.path, name), at.into)


def _ask_additional(check: Check, at: _Place, value: Any) -> None:
    if not isinstance(value, dict) or at.wanted is True:
        return
    known, patterns = at.schema.get("properties", {}), at.schema.get("patternProperties", {})
    check.spend(len(value) * (1 + len(patterns)))
    for name, one in value.items():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if at.wanted is False:
            at.refuse(name)
        else:
            check.visit(at.wanted, one, (*at.path, name), at.into)


def _ask_names(check: Check, at: _Place, value: Any) -> None:
    if isinstance(value, dict):
        for name in value:
            check.visit(at.wanted, name, (*at.path, name), at.into)


def _ask_all(check: Check, at: _Place, value: Any) -> None:
    for part in at.wanted:
        check.visit(part, value, at.path, at.into)


def _ask_some(check: Check, at: _Place, value: Any) -> None:
    found: list[Problem] = []
    held = 0
    for part in at.wanted:
        wrong: list[Problem] = []
        check.visit(part, value, at.path, wrong)
        held += not wrong
        if held and at.key == "anyOf":
            return
        found += wrong[: MOST_ERRORS - len(found)]
    if held == 1:
        return
    deeper = next((one for one in found if len(one.path) > len(at.path)), None)
    if held or not found:
        at.refuse()
    elif deeper is not None:
        at.into.append(deeper)
    else:
        at.into.append(Problem(at.path, at.key, found))


def _ask_not(check: Check, at: _Place, value: Any) -> None:
    if check.holds(at.wanted, value):
        at.refuse()


def _ask_if(check: Check, at: _Place, value: Any) -> None:
    chosen = "then" if check.holds(at.wanted, value) else "else"
    if chosen in at.schema:
        check.visit(at.schema[chosen], value, at.path, at.into)


_KEYWORDS: Final[dict[str, Callable[[Check, _Place, Any], None]]] = {
    "$ref": _ask_reference,
    "type": _ask_type,
    **dict.fromkeys(("enum", "const"), _ask_choice),
    **dict.fromkeys(_NUMBERS, _ask_number),
    **dict.fromkeys(_SIZES, _ask_size),
    "pattern": _ask_pattern,
    "uniqueItems": _ask_unique,
    **dict.fromkeys(("prefixItems", "items"), _ask_items),
    "contains": _ask_contains,
    "required": _ask_required,
    **dict.fromkeys(("dependentRequired", "dependentSchemas"), _ask_dependents),
    "properties": _ask_properties,
    "patternProperties": _ask_pattern_properties,
    "additionalProperties": _ask_additional,
    "propertyNames": _ask_names,
    "allOf": _ask_all,
    **dict.fromkeys(("anyOf", "oneOf"), _ask_some),
    "not": _ask_not,
    "if": _ask_if,
}


def _compares(key: str, value: float, wanted: float) -> bool:
    match key:
        case "minimum":
            return value >= wanted
        case "maximum":
            return value <= wanted
        case "exclusiveMinimum":
            return value > wanted
        case "exclusiveMaximum":
            return value < wanted
    if isinstance(value, int) and isinstance(wanted, int):
        return value % wanted == 0
    try:
        quotient = value / wanted
    except OverflowError:
        return True
    return math.isfinite(quotient) and quotient == int(quotient)


def _matches(pattern: str, text: str) -> bool:
    """By an engine that takes linear time; what it cannot match by is left to the handler."""
    matcher = _matcher(pattern)
    if matcher is None:
        return True
    try:
        matcher.validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=16)
def _matcher(pattern: str) -> SchemaValidator | None:
    if len(pattern) > _PATTERN_CHARS:
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None
