"""Payloads are untrusted: values that PostgreSQL or Python cannot handle are refused by name."""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from laneway.domain.payload import (
    PayloadLimits,
    check_key,
    decode,
    encode,
)
from laneway.domain.text import check_text, escape_text
from laneway.errors import InvalidInput

LIMITS = PayloadLimits()
NUL = "\x00"
LONE = "\ud800"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=NUL))
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) < 1e308)
integers = st.integers(-(10**308) + 1, 10**308 - 1) | st.integers(-1000, 1000)
values = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def through_jsonb(value: object) -> str:
    """The text that PostgreSQL returns: numbers in full, a space after comma and colon."""
    return _jsonb(json.loads(encode(value), parse_float=Decimal, parse_int=Decimal))


def _jsonb(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)}: {_jsonb(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_jsonb, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def nested(depth: int, make: Any = lambda inner: [inner]) -> Any:
    value = make(None)
    for _ in range(depth - 1):
        value = make(value)
    return value


@given(values)
def test_encoded_value_is_decoded_unchanged(value: object) -> None:
    assert decode(encode(value)) == value


@given(values)
def test_encoded_value_is_decoded_from_postgresqls_text(value: object) -> None:
    assert decode(through_jsonb(value)) == value


def test_largest_payload_of_tiny_numbers_is_read_back() -> None:
    value = [1.5e-300] * 100_000
    written = through_jsonb(value)
    assert len(written) > 20 * LIMITS.max_bytes
    assert len(encode(value)) < LIMITS.max_bytes
    assert decode(written) == value


@given(st.floats(1e15, 9.9e307) | st.floats(-9.9e307, -1e15), texts)
def test_large_float_comes_back_as_the_same_float(number: float, text: str) -> None:
    """jsonb keeps 5e16 as an integer, and its digits are not those of the float."""
    value = {"1e+20" + text: ["2e+20", number, text]}
    back = decode(through_jsonb(value))
    assert back == value
    assert repr(back) == repr(value)


class Colour(StrEnum):
    RED = "red"


class Plain(Enum):
    RED = "red"


class Exploding(dict[str, object]):
    def items(self) -> Any:
        raise RuntimeError("boom")


class Opaque:
    def __repr__(self) -> str:
        raise RuntimeError("boom")

    __str__ = __repr__


Point = namedtuple("Point", "x y")

ODDITIES = [
    NUL,
    LONE,
    math.nan,
    -math.inf,
    1e308,
    10**308,
    10**5000,
    Decimal("1.5"),
    datetime(2026, 1, 1, tzinfo=UTC),
    b"x",
    {1},
    1j,
    object(),
    Opaque(),
    Opaque,
    Exploding(a=1),
    Point(1, 2),
    Colour.RED,
    Plain.RED,
    OrderedDict(a=1),
    {1: 2},
    {None: 2},
    {(1, 2): 3},
    {NUL: 1},
    {LONE: 1},
    len,
    nested(70),
    range(3),
]
# By index: not all of them can be printed.
oddities = st.integers(0, len(ODDITIES) - 1).map(lambda i: ODDITIES[i])
anything = st.recursive(
    oddities | st.text() | st.floats() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(anything)
def test_encoding_any_object_gives_json_or_invalid_input_and_nothing_else(value: object) -> None:
    try:
        text = encode(value)
    except InvalidInput as refused:
        problem = refused
    else:
        text.encode()
        decode(text)
        return
    assert problem.field.startswith("payload")
    # The refusal of unstorable text must itself be storable.
    encode(str(problem))


@given(st.text() | st.binary() | st.none() | st.integers())
def test_decoding_anything_gives_a_value_or_invalid_input(text: Any) -> None:
    try:
        value = decode(text)
    except InvalidInput:
        return
    assert json.loads(text) == value


HOSTILE = [
    ({"a": NUL}, "payload.a", "NUL"),
    ({"items": [0, 1, 2, {"name": f"x{NUL}y"}]}, "payload.items[3].name", "NUL"),
    ({"a": {f"k{NUL}": 1}}, 'payload.a["k\\\\u0000"]', "key contains a NUL"),
    ([LONE], "payload[0]", "surrogate"),
    ({"a b": LONE}, 'payload["a b"]', "surrogate"),
    ({LONE: 1}, 'payload["\ufffd"]', "surrogate"),
    ({"a": math.nan}, "payload.a", "NaN"),
    ({"a": [1.0, -math.inf]}, "payload.a[1]", "Infinity"),
    ({"a": 10**308}, "payload.a", "308 digits"),
    ({"a": -(10**308)}, "payload.a", "308 digits"),
    ({"a": 10**5000}, "payload.a", "308 digits"),
    ({"a": 1e308}, "payload.a", "308 digits"),
    ({"a": {1: 2}}, "payload.a", "keys must be text, not int"),
    ({"a": {None: 2}}, "payload.a", "keys must be text, not NoneType"),
    ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, "payload.at", "a datetime is not a JSON value"),
    ({"at": [date(2026, 1, 1)]}, "payload.at[0]", "isoformat"),
    ({"a": {1, 2}}, "payload.a", "a set is not a JSON value"),
    ({"a": b"x"}, "payload.a", "a bytes is not a JSON value"),
    ({"a": Decimal("1e400")}, "payload.a", "a Decimal is not a JSON value"),
    ({"a": UUID(int=1)}, "payload.a", "a UUID is not a JSON value"),
    ({"a": Plain.RED}, "payload.a", "a Plain is not a JSON value"),
    (nested(65), "payload" + "[0]" * 64, "deeper than 64"),
    (nested(65, lambda inner: {"a": inner}), "payload" + ".a" * 64, "deeper than 64"),
    ("x" * LIMITS.max_bytes, "payload", "at most 1048576"),
    ("é" * (LIMITS.max_bytes // 2), "payload", "at most 1048576"),
]


@pytest.mark.parametrize("value, path, rule", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_value_is_refused_with_its_path_and_rule(
    value: object, path: str, rule: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        encode(value)
    expected = path if len(path) <= 200 else path[:200] + "…"
    assert caught.value.field == expected
    assert rule in caught.value.rule


HOSTILE_TEXT = [
    ('{"a":1e5000}', "payload.a", "308 digits"),
    ('{"a":1E400}', "payload.a", "308 digits"),
    ('{"a":-1e+308}', "payload.a", "308 digits"),
    ('{"a":[0,' + "1" + "0" * 5000 + "]}", "payload.a[1]", "308 digits"),
    ("1" * 309, "payload", "308 digits"),
    ("1" * 309 + ".5", "payload", "308 digits"),
    ("1" + "0" * 131_071, "payload", "308 digits"),
    ("[NaN]", "payload[0]", "NaN"),
    ('{"a":-Infinity}', "payload.a", "Infinity"),
    ('{"a":"x\\u0000"}', "payload.a", "NUL"),
    ('["\\ud800"]', "payload[0]", "surrogate"),
    ('["\\uDC00x"]', "payload[0]", "surrogate"),
    (f'["{LONE}"]', "payload", "UTF-8"),
    (b'["\xff"]', "payload", "UTF-8"),
    ("[" * 65 + "]" * 65, "payload" + "[0]" * 64, "deeper than 64"),
    ("[" * 5000 + "]" * 5000, "payload" + "[0]" * 64, "deeper than 64"),
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "payload" + ".a" * 64, "deeper than 64"),
    (
        '{"x": "[{", "b": [1, ' + "[" * 5000 + "]" * 5000 + "]}",
        "payload.b[1]" + "[0]" * 62,
        "64 levels",
    ),
    ("[1,", "payload", "is not JSON"),
    ('["\x00"]', "payload", "is not JSON"),
    ("", "payload", "is not JSON"),
    ("[" + "1, " * 800_000 + "1]", "payload", "at most 1048576"),
]


@pytest.mark.parametrize("text, path, rule", HOSTILE_TEXT, ids=range(len(HOSTILE_TEXT)))
def test_hostile_row_is_refused_with_its_path_and_rule(
    text: str | bytes, path: str, rule: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode(text, LIMITS)
    expected = path if len(path) <= 200 else path[:200] + "…"
    assert caught.value.field == expected
    assert rule in caught.value.rule


HARMLESS = [
    None,
    "",
    [],
    {},
    {"text": "a literal \\u0000 and \\ud800 are only backslashes"},
    {"digits": "1" * 5000},
    {"text": "1e+400 and 1e5000"},
    {"😀": "é", "emoji": "\U0001f600"},
    10**308 - 1,
    9.9e307,
    5e-324,
    [0.1, 1e22, -0.0],
    nested(64),
    nested(64, lambda inner: {"a": inner}),
    "x" * (LIMITS.max_bytes - 2),
    {"control": "\x01\x1f\x7f\n\t"},
]


@pytest.mark.parametrize("value", HARMLESS, ids=range(len(HARMLESS)))
def test_harmless_odd_values_are_accepted(value: object) -> None:
    assert decode(encode(value)) == value
    assert decode(through_jsonb(value)) == value


def test_escaped_pair_of_surrogates_is_one_character() -> None:
    assert decode('"\\ud83d\\ude00"') == "😀"


def test_tree_nested_without_end_is_refused_as_too_deep_not_by_recursion() -> None:
    cycle: list[object] = []
    cycle += [cycle, cycle]
    for value in (nested(200_000), cycle):
        with pytest.raises(InvalidInput, match="deeper than 64"):
            encode(value)


def test_shared_lists_that_stand_for_an_endless_text_are_refused_soon() -> None:
    value: list[object] = [1]
    for _ in range(60):
        value = [value, value]
    began = time.process_time()
    with pytest.raises(InvalidInput, match="at most 1048576"):
        encode(value)
    with pytest.raises(InvalidInput):
        encode([Colour.RED, value, {1: 1}])
    assert time.process_time() - began < 5


def test_subclasses_of_json_types_are_encoded_as_base_types() -> None:
    assert encode([Colour.RED, OrderedDict(a=Point(1, 2))]) == '["red",{"a":[1,2]}]'
    assert encode((1, 2)) == "[1,2]"


class Author(BaseModel):
    name: str
    born: date


@dataclass
class Document:
    title: str
    authors: list[Author]


def test_model_or_a_dataclass_may_be_the_whole_payload() -> None:
    author = Author(name="Ada", born=date(1815, 12, 10))
    assert decode(encode(author)) == {"name": "Ada", "born": "1815-12-10"}
    assert decode(encode(Document("t", [author]))) == {
        "title": "t",
        "authors": [{"name": "Ada", "born": "1815-12-10"}],
    }


def test_hostile_value_inside_a_model_is_refused_by_path() -> None:
    with pytest.raises(InvalidInput) as caught:
        encode(Document(f"t{NUL}", []))
    assert caught.value.field == "payload.title"

    class Holder(BaseModel):
        thing: object

    with pytest.raises(InvalidInput, match="payload"):
        encode(Holder(thing=Opaque()))


def test_model_inside_a_payload_is_named_not_guessed() -> None:
    with pytest.raises(InvalidInput) as caught:
        encode({"who": Author(name="Ada", born=date(1815, 12, 10))})
    assert caught.value.field == "payload.who"
    assert "Author" in caught.value.rule


def test_limits_are_taken_from_the_settings() -> None:
    small = PayloadLimits(max_bytes=20, max_depth=2, max_digits=17)
    too_much: list[object] = [[[[]]], "x" * 19, 10**17, 1e17]
    for value in too_much:
        with pytest.raises(InvalidInput):
            encode(value, limits=small)
        encode(value)
    assert encode(10**17 - 1, limits=small)


@pytest.mark.parametrize(
    "field, value", [("max_bytes", 0), ("max_digits", 16), ("max_digits", 4301)]
)
def test_limits_themselves_have_limits(field: str, value: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        PayloadLimits(**{field: value})
    assert caught.value.field == field


@given(st.text(st.characters(categories=["Cs", "L", "Cc"])))
def test_escaped_text_is_always_fit_for_postgresql(text: str) -> None:
    escaped = escape_text(text)
    escaped.encode()
    assert NUL not in escaped
    assert escape_text(escaped) == escaped
    encode(escaped)


def test_escaping_shows_original_bytes() -> None:
    assert escape_text(f"a{NUL}b{LONE}c") == "a\\u0000b\ufffdc"
    assert escape_text("plain") == "plain"


@pytest.mark.parametrize(
    "key, rule",
    [
        ("", "empty"),
        (5, "must be text"),
        (f"a{NUL}", "NUL"),
        (LONE, "surrogate"),
        ("x" * 513, "512 bytes"),
        ("é" * 257, "512 bytes"),
    ],
)
def test_key_that_no_index_could_hold_is_refused(key: object, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule) as caught:
        check_key(key, "unique_key")
    assert caught.value.field == "unique_key"


def test_key_of_512_bytes_is_taken() -> None:
    assert check_key("é" * 256, "unique_key") == "é" * 256
    assert check_text("x", "tag", max_bytes=1) == "x"
