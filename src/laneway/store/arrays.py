"""PostgreSQL arrays as text: a third of the driver's cost, and ints and floats may be mixed."""

from __future__ import annotations

from collections.abc import Sequence


def array_of_numbers(values: Sequence[float | None]) -> str | None:
    """`{1,NULL,2.5}`; None when all values are null, because unnest pads with nulls."""
    if None not in values:
        return "{" + ",".join(map(str, values)) + "}" if values else None
    if values.count(None) == len(values):
        return None
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def array_of_texts(values: Sequence[str | None]) -> str | None:
    """`{"a",NULL}`, quoted; None when all values are null."""
    # Most batches have few different texts, each quoted once.
    texts = {value: "NULL" if value is None else _quoted(value) for value in set(values)}
    if texts.keys() <= {None}:
        return None
    return "{" + ",".join(map(texts.__getitem__, values)) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
