"""Limits as operators see and tune them, as statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from laneway.domain.limit import HoldingJob, Limit, LimitSettings
from laneway.store.statement import Row, Statement, first_column, one_row, rows_of

COLUMNS = tuple(LimitSettings.__annotations__)


class LimitLoad(NamedTuple):
    """A limit, its current holders, and the number of due jobs that need it.

    `busiest`: the holders in the busiest scope: the whole cluster, a host or a process.
    """

    limit: Limit
    running: int
    busiest: int
    waiting: int


def _load(row: Row) -> LimitLoad:
    return LimitLoad(Limit(*row[:7]), *row[7:])


def read(bound: int, name: str | None = None) -> Statement[list[LimitLoad]]:
    """All limits by name, or one; more than `bound` waiting jobs count as bound + 1."""
    return Statement(
        "limits/read_limits",
        lambda rows: [_load(row) for row in rows],
        {"bound": bound, "name": name},
    )


def holding_jobs(names: Iterable[str], most: int = 20) -> Statement[dict[str, list[HoldingJob]]]:
    """The running jobs that hold each of these limits, at most so many of each."""

    def decode(rows: list[Row]) -> dict[str, list[HoldingJob]]:
        found: dict[str, list[HoldingJob]] = {}
        for name, *job in rows:
            found.setdefault(name, []).append(HoldingJob(*job))
        return found

    return Statement("limits/list_holding_jobs", decode, {"names": list(names), "most": most})


def find(names: Iterable[str]) -> Statement[set[str]]:
    """The names that have a limit."""
    return Statement(
        "limits/find_limits", lambda rows: {row[0] for row in rows}, {"names": list(names)}
    )


def names(limit: int = 1000) -> Statement[list[str]]:
    """The names of all limits, to suggest one."""
    return Statement("limits/list_names", first_column, {"limit": limit})


def get(names: Iterable[str]) -> Statement[list[Limit]]:
    """The named limits that exist, by name."""
    return Statement("limits/get_limits", rows_of(Limit), {"names": list(names)})


def _changed(rows: list[Row]) -> Limit | None:
    return Limit(*rows[0]) if rows else None


def create(limit: Limit, by: str) -> Statement[Limit | None]:
    """Creates a limit; None when the name is taken."""
    params = {column: getattr(limit, column) for column in COLUMNS}
    return Statement("limits/create_limit", _changed, {"name": limit.name, "by": by, **params})


def tune(name: str, change: Mapping[str, object], by: str) -> Statement[Limit | None]:
    """Changes the columns in `change` (already validated); None for an unknown limit."""
    params = {column: change.get(column) for column in COLUMNS}
    return Statement(
        "limits/tune_limit", _changed, {"name": name, "by": by, "columns": list(change), **params}
    )


class Deletion(NamedTuple):
    """Whether a limit was deleted, and if not, what needs it; neither: unknown limit."""

    is_gone: bool
    blocker: str | None


def delete(name: str, by: str) -> Statement[Deletion]:
    """Deletes a limit unless something needs it."""
    return Statement("limits/delete_limit", one_row(Deletion), {"name": name, "by": by})
