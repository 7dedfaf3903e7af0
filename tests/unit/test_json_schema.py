"""The cost of any published schema is bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from laneway.domain import json_schema, payload_check
from laneway.domain.arguments import check_schema, validate_against_schema
from laneway.domain.json_schema import CACHED_BYTES, MAX_BYTES, MAX_PARTS
from laneway.domain.payload_check import MAX_STEPS
from laneway.errors import InvalidInput


def doubled(levels: int) -> dict[str, Any]:
    """Each level checks the same value twice at the next level."""
    defs: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    defs[f"d{levels}"] = {"type": "object"}
    return {"$defs": defs, "$ref": "#/$defs/d0"}


REFUSED: dict[str, Any] = {
    "a reference to a default": {
        "properties": {"x": {"$ref": "#/default"}},
        "default": {"pattern": "^(a+)+$"},
    },
    "a reference to a property": {
        "properties": {"x": {"$ref": "#/properties/y"}, "y": {"type": "string"}}
    },
    "a reference to the root": {"properties": {"x": {"$ref": "#"}}},
    "a reference into a definition": {
        "$defs": {"a": {"default": {"b": {}}}},
        "$ref": "#/$defs/a/default",
    },
    "a reference to nothing": {"$ref": "#/$defs/gone"},
    "a remote reference": {"$ref": "http://127.0.0.1:9/schema.json"},
    "a file": {"$ref": "file:///etc/passwd"},
    "no text as reference": {"$ref": 5},
    "a dynamic reference": {"$dynamicRef": "#x"},
    "a dynamic anchor": {"$defs": {"a": {"$dynamicAnchor": "x"}}},
    "an id": {"$id": "http://127.0.0.1:9/"},
    "an anchor": {"properties": {"x": {"$anchor": "a"}}},
    "definitions of old": {"definitions": {"a": {}}},
    "definitions deeper": {"properties": {"x": {"$defs": {"a": {}}}}},
    "a loop": {
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    },
    "doubling references": doubled(30),
    "doubling below a value": {
        **doubled(30),
        "$ref": "#/$defs/d30",
        "properties": {"x": {"items": {"$ref": "#/$defs/d0"}}},
    },
    "too many parts": {"anyOf": [{"type": "string"}] * (MAX_PARTS + 1)},
    "too long": {"description": "x" * MAX_BYTES},
    "a type that is none": {"type": "thing"},
    "a bound that is none": {"minLength": -1},
    "a part that is none": {"properties": {"x": 5}},
    "required by name": {"required": "x"},
}
NESTED: Any = {}
for _ in range(200):
    NESTED = {"not": NESTED}
REFUSED["nested deeply"] = NESTED


@pytest.mark.parametrize("name", REFUSED)
def test_schema_that_could_cost_too_much_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_schema(REFUSED[name], "d.arguments")
    assert refused.value.field == "d.arguments"
    # A schema stored by an earlier version is left to the handler.
    validate_against_schema(REFUSED[name], {"x": "a"})


def test_payload_is_refused_by_a_choice_of_nothing() -> None:
    schema: dict[str, Any] = {"anyOf": []}
    check_schema(schema, "d.arguments")
    with pytest.raises(InvalidInput):
        validate_against_schema(schema, {"x": "a"})


TWICE: dict[str, Any] = {
    "$defs": {"n": {"allOf": [{"properties": {"a": {"$ref": "#/$defs/n"}}}] * 2}},
    "$ref": "#/$defs/n",
}
DEEP: dict[str, Any] = {}
for _ in range(60):
    DEEP = {"a": DEEP}
COSTLY: dict[str, tuple[Any, Any]] = {
    "doubling with every level of the payload": (TWICE, DEEP),
    "many branches for every item": (
        {"properties": {"x": {"items": {"anyOf": [{"type": "string"}] * 900}}}},
        {"x": [0] * 100_000},
    ),
    "many branches for one large value": (
        {"properties": {"x": {"anyOf": [{"const": [n]} for n in range(900)]}}},
        {"x": [[1, "a"]] * 50_000},
    ),
    "unique items that cannot be sorted": (
        {"properties": {"x": {"type": "array", "uniqueItems": True}}},
        {"x": [{"a": n} if n % 2 else str(n) for n in range(60_000)]},
    ),
    "patterns": (
        {"properties": {"x": {"allOf": [{"pattern": "^(a+)+$"}, {"pattern": "^(a|aa)*b$"}]}}},
        {"x": "a" * 100_000 + "!"},
    ),
}


@pytest.mark.parametrize("name", COSTLY)
def test_checking_a_payload_takes_a_bounded_number_of_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, payload = COSTLY[name]
    found = json_schema.read(json.dumps(schema))
    asked = 0
    visit = payload_check.PayloadCheck.visit

    def counted(self: Any, *given: Any) -> Any:
        nonlocal asked
        asked += 1
        return visit(self, *given)

    monkeypatch.setattr(payload_check.PayloadCheck, "visit", counted)
    payload_check.problems(found, payload)
    assert asked <= MAX_STEPS + 1


def test_patterns_take_linear_time_and_odd_ones_are_left_to_the_handler() -> None:
    schema = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    validate_against_schema(schema, {"x": "aaa"})
    with pytest.raises(InvalidInput, match="pattern"):
        validate_against_schema(schema, {"x": "a" * 50_000 + "!"})
    validate_against_schema({"properties": {"x": {"pattern": r"^(a+)\1$(?!b)"}}}, {"x": "b"})


def test_schemas_are_kept_by_their_bytes() -> None:
    for n in range(200):
        check_schema({"title": str(n), "description": "x" * (MAX_BYTES - 100)}, "d")
    assert len(json_schema.cache) <= CACHED_BYTES // (MAX_BYTES - 100)


def test_model_that_holds_itself_is_checked_to_its_depth() -> None:
    schema = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
                "required": ["next"],
            }
        },
        "$ref": "#/$defs/node",
    }
    validate_against_schema(schema, {"next": {"next": None}})
    with pytest.raises(InvalidInput) as refused:
        validate_against_schema(schema, {"next": {"next": 5}})
    assert refused.value.field.startswith("payload.next")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
SMALL = st.integers(0, 3)
NAMES = st.lists(st.sampled_from("abc"), unique=True, max_size=2)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["null", "boolean", "integer", "string", "array", "object"]),
        "enum": st.lists(VALUES, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "multipleOf": st.integers(1, 3),
        "minLength": SMALL,
        "maxLength": SMALL,
        "pattern": st.sampled_from(["^a", "b$", "a|b", "[ab]{2}"]),
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": st.booleans(),
        "required": NAMES,
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "dependentRequired": st.dictionaries(st.sampled_from("abc"), NAMES, max_size=2),
        "$ref": st.just("#/$defs/d"),
    },
)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), some),
            **dict.fromkeys(("not", "if", "then", "else", "items", "contains"), inner),
            **dict.fromkeys(("additionalProperties", "propertyNames"), inner),
            "properties": named,
            "dependentSchemas": named,
            "patternProperties": st.dictionaries(st.sampled_from(["a", "[bc]"]), inner, max_size=2),
            "minContains": SMALL,
            "maxContains": SMALL,
        },
    )


@given(
    schema=st.recursive(LEAVES | st.booleans(), _grown, max_leaves=8),
    definition=LEAVES.map(lambda made: {k: v for k, v in made.items() if k != "$ref"}),
    value=VALUES,
)
def test_payload_check_agrees_with_json_schema(schema: Any, definition: Any, value: Any) -> None:
    root = {"properties": {"x": schema}, "$defs": {"d": definition}}
    payload = {"x": value}
    found = payload_check.problems(json_schema.read(json.dumps(root)), payload)
    assert bool(found) is not Draft202012Validator(root).is_valid(payload)
