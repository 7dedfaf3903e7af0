"""A store operation as a value, independent of how it is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
Row = Sequence[Any]
# Not importlib.resources: it takes a tenth of the time to start a worker's heartbeat process.
_SQL: Final = Path(__file__).with_name("sql")


@cache
def sql(name: str) -> str:
    """The text of sql/<name>.sql without its head comment."""
    text = (_SQL / f"{name}.sql").read_text("utf-8")
    lines = text.splitlines()
    while lines and lines[0].startswith("--"):
        lines.pop(0)
    return "\n".join(lines).strip()


@dataclass(frozen=True, slots=True)
class Statement(Generic[T]):
    """One SQL file with its parameters and the decoder of its result."""

    name: str
    decode: Callable[[list[Row]], T]
    # Not shown: payloads and secrets.
    params: Mapping[str, object] = field(default_factory=dict, repr=False)
    # Whether the result may hold megabytes, to be decoded in a thread.
    may_be_large: bool = False

    @property
    def text(self) -> str:
        return sql(self.name)


def nothing(rows: list[Row]) -> None:
    """Ignores the result."""


def scalar(rows: list[Row]) -> Any:
    """The only column of the only row, or None."""
    return rows[0][0] if rows else None


def one(rows: list[Row]) -> Row | None:
    """The only row, or None."""
    return rows[0] if rows else None


def one_row(make: Callable[..., T]) -> Callable[[list[Row]], T]:
    """Makes a value of the columns of the only row."""
    return lambda rows: make(*rows[0])


def maybe_row(make: Callable[..., T]) -> Callable[[list[Row]], T | None]:
    """Makes a value of the columns of the only row; None without one."""
    return lambda rows: make(*rows[0]) if rows else None


def rows_of(make: Callable[..., T]) -> Callable[[list[Row]], list[T]]:
    """Makes a value of the columns of each row."""
    return lambda rows: [make(*row) for row in rows]


def first_column(rows: list[Row]) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in rows]


def as_json(value: Any) -> Any:
    """The value of a jsonb column; on a caller's connection it may be text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:  # a text that was read already
        return value
