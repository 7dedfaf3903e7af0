"""Handlers whose results need their return hint, or cannot be stored, in every isolation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from laneway import Context, Laneway, SyncContext
from tests.support.worker_harness import SOON

lw = Laneway("postgresql://unused@nowhere/nothing")


class Colour(Enum):
    RED = "red"


class Author(BaseModel):
    name: str
    born: date


@dataclass
class Report:
    id: UUID
    at: datetime
    total: Decimal
    colour: Colour
    author: Author


REPORT = Report(
    UUID(int=7),
    datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    Decimal("12.30"),
    Colour.RED,
    Author(name="Ada", born=date(1815, 12, 10)),
)
STORED = {
    "id": "00000000-0000-0000-0000-000000000007",
    "at": "2026-01-02T03:04:00Z",
    "total": "12.30",
    "colour": "red",
    "author": {"name": "Ada", "born": "1815-12-10"},
}


def _deep() -> object:
    value: object = 1
    for _ in range(100):
        value = [value]
    return value


# By name: the result, and the start of the error.
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "unknown": (
        lambda: {"pages": [1, sys]},
        "result.pages[1]: a module is not a JSON value; return JSON values, or declare the return",
    ),
    "datetime": (
        lambda: {"at": REPORT.at},
        "result.at: a datetime is not a JSON value; return .isoformat(), or declare the return",
    ),
    "nan": (lambda: {"score": float("nan")}, "result.score: NaN and Infinity are not JSON numbers"),
    "nul": (lambda: ["a\0b"], "result[0]: contains a NUL character"),
    "surrogate": (lambda: {"a": "\ud800"}, "result.a: contains"),
    "deep": (_deep, "result"),
    "large": (lambda: "x" * 1_100_000, "result: is at least"),
}


def register(app: Laneway, isolation: str) -> None:
    """Add handlers named `<isolation>_report`, `_bad` and `_mismatch` to an application."""
    options: dict[str, Any] = {"isolation": isolation, "retry": SOON}
    if isolation == "async":

        @app.handler("async_report", **options)
        async def report(ctx: Context) -> Report:
            return REPORT

        @app.handler("async_bad", **options)
        async def bad(ctx: Context, how: str):  # type: ignore[no-untyped-def]
            return BAD[how][0]()

        @app.handler("async_mismatch", **options)
        async def mismatch(ctx: Context) -> dict[str, int]:
            return {"n": "many"}  # type: ignore[dict-item]

        return

    @app.handler(f"{isolation}_report", **options)
    def report_blocking(ctx: SyncContext) -> Report:
        return REPORT

    @app.handler(f"{isolation}_bad", **options)
    def bad_blocking(ctx: SyncContext, how: str):  # type: ignore[no-untyped-def]
        return BAD[how][0]()

    @app.handler(f"{isolation}_mismatch", **options)
    def mismatch_blocking(ctx: SyncContext) -> dict[str, int]:
        return {"n": "many"}  # type: ignore[dict-item]


for _isolation in ("async", "thread", "process"):
    register(lw, _isolation)
