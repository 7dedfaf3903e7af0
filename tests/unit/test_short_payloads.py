"""Short payloads are read by a shorter way, with the same values and refusals as long ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.payload import PayloadLimits, decode
from laneway.errors import InvalidInput
from laneway.store.arrays import array_of_numbers, array_of_texts

LIMITS = PayloadLimits(max_digits=40)
# Longer than any number may be: the longer way.
PADDING = " " * 50

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**45), 10**45)
    | st.floats()
    | st.text(max_size=8)
)
written = st.dictionaries(st.text(max_size=3), scalars | st.lists(scalars), max_size=3).map(
    json.dumps
)
odd = st.sampled_from(
    [
        '{"a": NaN}', '{"a": 1e400}', '{"a": 1e39}', '{"a": "\\u0000"}', '{"a": "\x00"}', "{}", "",
        '{"a": "\\ud800"}', '{"a": "\ud800"}', '{"a": 1} x', '{"a": 1', '{"a": {"b": 1}}', "[1]",
        '{"a": 1, "a": 2}', "1", "null", '{"a": -Infinity}', '{"a": "\n"}', " {}", "{} ",
        '{"a": %s}' % ("9" * 30), '{"a": %s}' % ("9" * 41), '{"a": tru}', "{1: 2}", '{"ä": 1}',
    ]
)  # fmt: skip


def outcome(text: str) -> object:
    try:
        return repr(decode(text, LIMITS))
    except InvalidInput as error:
        return error.field, type(error)


@given(written | odd)
def test_short_text_is_read_like_a_padded_one(text: str) -> None:
    assert outcome(text) == outcome(text + PADDING)


@given(st.lists(st.none() | st.text(max_size=5), max_size=6))
def test_array_of_texts_quotes_each_value(values: list[str | None]) -> None:
    def shown(value: str | None) -> str:
        if value is None:
            return "NULL"
        escaped = "".join("\\" + c if c in '\\"' else c for c in value)
        return f'"{escaped}"'

    expected = "{" + ",".join(map(shown, values)) + "}"
    assert array_of_texts(values) == (expected if any(v is not None for v in values) else None)


@pytest.mark.parametrize(
    "values, text",
    [([], None), ([None, None], None), ([1, None, 2.5], "{1,NULL,2.5}"), ((3, 4), "{3,4}")],
)
def test_array_of_numbers_is_null_without_a_value(
    values: list[float | None], text: str | None
) -> None:
    assert array_of_numbers(values) == text
