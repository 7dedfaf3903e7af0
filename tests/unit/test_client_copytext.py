"""COPY's text format, checked against a reader written from PostgreSQL's manual."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.job import new_job_id, new_job_ids
from laneway.store.copytext import array_literal, column, escape

ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_column(written: str) -> str | None:
    if written == "\\N":
        return None
    read, rest = [], iter(written)
    for letter in rest:
        if letter == "\\":
            follower = next(rest)
            read.append(ESCAPES.get(follower, follower))
        else:
            read.append(letter)
    return "".join(read)


def read_array(literal: str) -> list[str]:
    assert literal.startswith('{"')
    assert literal.endswith('"}')
    items, item, is_inside = [], "", False
    rest = iter(literal[1:-1])
    for letter in rest:
        if letter == "\\":
            item += next(rest)
        elif letter == '"':
            if is_inside:
                items.append(item)
            item, is_inside = "", not is_inside
        elif is_inside:
            item += letter
        else:
            assert letter == ","
    return items


letters = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
texts = st.text(letters | st.sampled_from('\\\t\n\r\b\f\v"N.{},'))


@given(texts)
def test_escaped_text_stays_in_its_column_and_line(text: str) -> None:
    written = escape(text)
    assert not set(written) & {"\t", "\n", "\r"}
    assert written not in ("\\N", "\\.")
    assert read_column(written) == text


@given(st.none() | texts | st.integers())
def test_null_differs_from_every_text(value: str | int | None) -> None:
    assert read_column(column(value)) == (None if value is None else str(value))


@given(st.lists(texts, min_size=1, max_size=5))
def test_array_keeps_its_texts_apart(items: list[str]) -> None:
    literal = array_literal(items)
    assert literal is not None
    assert read_array(literal) == items
    assert read_column(escape(literal)) == literal


def test_no_texts_are_null() -> None:
    assert array_literal(()) is None


def test_ids_made_together_are_in_order_and_among_the_others() -> None:
    before, batch, after = new_job_id(), new_job_ids(2000), new_job_id()
    assert [before, *batch, after] == sorted({before, *batch, after})
    assert {made.version for made in batch} == {7}
    assert {made.variant for made in batch} == {before.variant}
    assert new_job_ids(0) == []
