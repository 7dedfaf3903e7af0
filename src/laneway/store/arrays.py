"""PostgreSQL arrays as text: a third of the driver's own cost, and ints and floats may mix."""

from __future__ import annotations

from collections.abc import Sequence


def array_of_numbers(values: Sequence[float | None]) -> str | None:
    """`{1,NULL,2.5}`; None when there is nothing but nulls, which unnest fills up by itself."""
    if not any(value is not None for value in values):
        return None
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def array_of_texts(values: Sequence[str | None]) -> str | None:
    """`{"a",NULL}`, quoted; None when there is nothing but nulls."""
    if not any(value is not None for value in values):
        return None
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
