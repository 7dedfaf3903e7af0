"""Checks of payloads by a published JSON Schema, in a bounded number of steps.

`json_schema.read` has checked the schema. Keywords unknown here are left to the handler, which
checks its arguments again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from laneway.domain.json_schema import NUMBERS, SIZES, TYPES, definition_of
from laneway.domain.text import escape_text

# For one payload; the handler checks the rest of a larger one.
MAX_STEPS: Final = 100_000
MAX_ERRORS: Final = 100
RULE_CHARS: Final = 300
REQUIRED: Final = "is required"
UNKNOWN: Final = "is not an argument of this job type"
_PATTERN_CHARS: Final = 1_000
_SIZED: Final[dict[str, type[Any]]] = {"Length": str, "Items": list, "Properties": dict}
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


class SchemaViolation(NamedTuple):
    """A place in a payload, and the keyword that it violates; for a choice, all of them."""

    path: Path
    key: str
    wanted: Any

    @property
    def rule(self) -> str:
        """The rule for people; built on demand, because most are not shown."""
        if self.key == "":
            return "is not allowed"
        if self.key == "required":
            return REQUIRED
        if self.key == "additionalProperties":
            return UNKNOWN
        if (
            self.key in ("anyOf", "oneOf")
            and self.wanted
            and isinstance(self.wanted[0], SchemaViolation)
        ):
            return " or ".join(dict.fromkeys(one.rule for one in self.wanted))[:RULE_CHARS]
        shown = json.dumps(self.wanted, ensure_ascii=False)[:RULE_CHARS]
        template = _RULES.get(self.key, f"must satisfy {self.key} {{}}")
        return escape_text(template.format(shown))[:RULE_CHARS]


class _OutOfStepsError(Exception):
    """All steps are used up."""


def problems(schema: Mapping[str, Any], payload: object) -> list[SchemaViolation]:
    """The first 100 violations of a schema that `json_schema.read` returned."""
    found: list[SchemaViolation] = []
    # Violations found before the steps ran out count.
    with suppress(_OutOfStepsError):
        PayloadCheck(schema).visit(schema, payload, (), found)
    return found[:MAX_ERRORS]


class PayloadCheck:
    """One payload, checked in a bounded number of steps."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._defs = root.get("$defs", {})
        self._left = MAX_STEPS
        # The values that enum and const allow, by the schema around them.
        self._keys: dict[tuple[int, str], frozenset[Any]] = {}

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _OutOfStepsError

    def visit(self, schema: Any, value: Any, path: Path, into: list[SchemaViolation]) -> None:
        """Add the violations of a value, up to MAX_ERRORS."""
        if isinstance(schema, bool):
            self.spend(1)
            if not schema:
                into.append(SchemaViolation(path, "", None))
            return
        self.spend(1 + len(schema))
        for key, wanted in schema.items():
            check_keyword = _KEYWORDS.get(key)
            if check_keyword is not None and len(into) < MAX_ERRORS:
                check_keyword(self, _SchemaPlace(schema, key, wanted, path, into), value)

    def is_valid(self, schema: Any, value: Any) -> bool:
        found: list[SchemaViolation] = []
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
        """A key that is equal for equal JSON values: 1 and 1.0, but not 1 and true."""
        self.spend(1)
        if isinstance(value, bool):
            return value, "boolean"
        if isinstance(value, list):
            return "array", tuple(map(self.key, value))
        if isinstance(value, dict):
            return "object", frozenset((name, self.key(one)) for name, one in value.items())
        return value


class _SchemaPlace(NamedTuple):
    """A keyword of a schema, the place in the payload, and the list for violations."""

    schema: Any
    key: str
    wanted: Any
    path: Path
    into: list[SchemaViolation]

    def refuse(self, *names: str) -> None:
        """Add a violation of the keyword, by the value or by a member of it."""
        self.into.append(SchemaViolation((*self.path, *names), self.key, self.wanted))


def _check_reference(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    check.visit(check.definition(at.wanted), value, at.path, at.into)


def _check_type(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    names = at.wanted if isinstance(at.wanted, list) else [at.wanted]
    if not any(TYPES[name](value) for name in names):
        at.refuse()


def _check_choice(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if check.key(value) not in check.allowed(at.schema, at.key):
        at.refuse()


def _check_number(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if TYPES["number"](value) and not _is_in_range(at.key, value, at.wanted):
        at.refuse()


def _check_size(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, _SIZED[at.key[3:]]):
        size = len(value)
        if size < at.wanted if at.key.startswith("min") else size > at.wanted:
            at.refuse()


def _check_pattern(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, str):
        check.spend(len(value) // 100)
        if not _matches(at.wanted, value):
            at.refuse()


def _check_unique(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    applies = at.wanted and isinstance(value, list)
    if applies and len({check.key(one) for one in value}) < len(value):
        at.refuse()


def _check_items(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if not isinstance(value, list):
        return
    if at.key == "prefixItems":
        for n, (part, one) in enumerate(zip(at.wanted, value, strict=False)):
            check.visit(part, one, (*at.path, n), at.into)
        return
    for n in range(len(at.schema.get("prefixItems", ())), len(value)):
        check.visit(at.wanted, value[n], (*at.path, n), at.into)


def _check_contains(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, list):
        count = sum(check.is_valid(at.wanted, one) for one in value)
        least = at.schema.get("minContains", 1)
        if not least <= count <= at.schema.get("maxContains", len(value)):
            at.refuse()


def _check_required(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, dict):
        check.spend(len(at.wanted))
        for name in at.wanted:
            if name not in value:
                at.refuse(name)


def _check_dependents(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if not isinstance(value, dict):
        return
    check.spend(len(at.wanted))
    for name, needed in at.wanted.items():
        if name not in value:
            continue
        if at.key == "dependentSchemas":
            check.visit(needed, value, at.path, at.into)
        else:
            _check_required(check, at._replace(key="required", wanted=needed), value)


def _check_properties(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, dict):
        small, large = sorted((at.wanted, value), key=len)
        check.spend(len(small))
        for name in small:
            if name in large:
                check.visit(at.wanted[name], value[name], (*at.path, name), at.into)


def _check_pattern_properties(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, dict):
        check.spend(len(value) * len(at.wanted))
        for pattern, part in at.wanted.items():
            for name, one in value.items():
                if _matches(pattern, name):
                    check.visit(part, one, (*at.path, name), at.into)


def _check_additional(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
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


def _check_names(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if isinstance(value, dict):
        for name in value:
            check.visit(at.wanted, name, (*at.path, name), at.into)


def _check_all(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    for part in at.wanted:
        check.visit(part, value, at.path, at.into)


def _check_choice_of_schemas(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    found: list[SchemaViolation] = []
    held = 0
    for part in at.wanted:
        wrong: list[SchemaViolation] = []
        check.visit(part, value, at.path, wrong)
        held += not wrong
        if held and at.key == "anyOf":
            return
        found += wrong[: MAX_ERRORS - len(found)]
    if held == 1:
        return
    deeper = next((one for one in found if len(one.path) > len(at.path)), None)
    if held or not found:
        at.refuse()
    elif deeper is not None:
        at.into.append(deeper)
    else:
        at.into.append(SchemaViolation(at.path, at.key, found))


def _check_not(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    if check.is_valid(at.wanted, value):
        at.refuse()


def _check_if(check: PayloadCheck, at: _SchemaPlace, value: Any) -> None:
    chosen = "then" if check.is_valid(at.wanted, value) else "else"
    if chosen in at.schema:
        check.visit(at.schema[chosen], value, at.path, at.into)


_KEYWORDS: Final[dict[str, Callable[[PayloadCheck, _SchemaPlace, Any], None]]] = {
    "$ref": _check_reference,
    "type": _check_type,
    **dict.fromkeys(("enum", "const"), _check_choice),
    **dict.fromkeys(NUMBERS, _check_number),
    **dict.fromkeys(SIZES, _check_size),
    "pattern": _check_pattern,
    "uniqueItems": _check_unique,
    **dict.fromkeys(("prefixItems", "items"), _check_items),
    "contains": _check_contains,
    "required": _check_required,
    **dict.fromkeys(("dependentRequired", "dependentSchemas"), _check_dependents),
    "properties": _check_properties,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_additional,
    "propertyNames": _check_names,
    "allOf": _check_all,
    **dict.fromkeys(("anyOf", "oneOf"), _check_choice_of_schemas),
    "not": _check_not,
    "if": _check_if,
}


def _is_in_range(key: str, value: float, wanted: float) -> bool:
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
    """Match in linear time; patterns that this engine lacks are left to the handler."""
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
