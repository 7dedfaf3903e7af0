# ruff: noqa: S608 -- the plan is SQL of the operator, who may run any
"""Rows of another system's table, taken under a lock and marked when they have become jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg

from laneway.domain.job_import import ImportPlan
from laneway.errors import InvalidInput
from laneway.store.database import AsyncConn

_KIND: Final = "select c.relkind::text from pg_class c where c.oid = to_regclass(%s)"
_TABLES: Final = ("r", "p")


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A row: its place (table and ctid), its id there, and the values of the plan's expressions."""

    place: tuple[int, str]
    id: str
    job_type: str
    payload: str | None
    options: Any

    @property
    def key(self) -> str:
        """The row as it is now: its id may be that of other rows too, its place change later."""
        return f"{self.place[0]}{self.place[1]}/{self.id}"

    def read_payload(self) -> Any:
        """The payload; ValueError if it is not JSON that Python can read."""
        try:
            return None if self.payload is None else json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is not JSON that can be read: {error}") from None


async def check_table(conn: AsyncConn, plan: ImportPlan) -> None:
    """Refuse views and foreign tables, whose rows cannot be moved in one transaction."""
    rows = await _run(conn, _KIND, (plan.table,))
    if not rows:
        raise InvalidInput("table", f"{plan.table} was not found; write it with its schema")
    if rows[0][0] not in _TABLES:
        raise InvalidInput("table", "must be a table of this database, no view or foreign table")


async def take(
    conn: AsyncConn, plan: ImportPlan, count: int, without: Sequence[str]
) -> list[ForeignJob]:
    """The next rows, locked; not those that others hold, nor those with the keys `without`."""
    options = "".join(f", ({each})" for each in plan.options.values())
    query = (
        f"select tableoid::bigint, ctid::text, ({plan.id})::text, ({plan.job_type})::text,"
        f" ({plan.payload})::text{options} from {plan.table} where ({plan.where})"
    )
    key = f"tableoid::bigint::text || ctid::text || '/' || coalesce(({plan.id})::text, '')"
    query = f"{_literal(query)} and not {_literal(key)} = any (%s)"
    query += f" order by {_literal(plan.id)} limit %s for update skip locked"
    rows = await _run(conn, query, (list(without), count))
    if any(row[2] is None for row in rows):
        raise InvalidInput("id", "must not be null in a row that is to be moved")
    return [
        ForeignJob(
            (table, place),
            row_id,
            plan.job_types.get(job_type, job_type),
            payload,
            {
                name: value
                for name, value in zip(plan.options, values, strict=True)
                if value is not None
            },
        )
        for table, place, row_id, job_type, payload, *values in rows
    ]


async def mark(
    conn: AsyncConn, plan: ImportPlan, moved: Sequence[ForeignJob], jobs: Sequence[UUID]
) -> None:
    """Change or delete rows that have become these jobs; refuse a plan that takes one again."""
    tables, places = zip(*(each.place for each in moved), strict=True)
    source = (
        "unnest(%s::bigint[], %s::tid[], %s::uuid[]) as laneway_moved (part, place, laneway_job_id)"
    )
    same = "tableoid = laneway_moved.part::oid and ctid = laneway_moved.place"
    if plan.moved is None:
        query = f"delete from {_literal(plan.table)} using {source} where {same} returning false"
    else:
        query = (
            f"update {_literal(plan.table)} set {_literal(plan.moved)} from {source}"
            f" where {same} returning ({_literal(plan.where)})"
        )
    rows = await _run(conn, query, (list(tables), list(places), list(jobs)))
    if len(rows) != len(moved):
        raise InvalidInput(
            "moved",
            f"changed {len(rows)} of {len(moved)} rows: a trigger, rule or policy kept the others",
        )
    if any(row[0] for row in rows):
        raise InvalidInput("moved", "must make `where` false: the row would be taken again")


def _literal(text: str) -> str:
    """SQL of the plan, in which a percent sign is not a placeholder."""
    return text.replace("%", "%%")


async def _run(conn: AsyncConn, query: str, values: tuple[object, ...]) -> list[Any]:
    try:
        cursor = await conn.execute(query.encode(), values)
        return await cursor.fetchall() if cursor.description else []
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError) as error:
        where = "" if error.diag.context is None else f" ({error.diag.context})"
        raise InvalidInput("plan", f"{error.diag.message_primary or error}{where}") from None
