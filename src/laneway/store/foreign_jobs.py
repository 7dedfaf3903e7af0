# ruff: noqa: S608 -- the plan is SQL of the operator, who may run any
"""Rows of another system's table, taken under a lock and marked when they have become jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from laneway.domain.job_import import ImportPlan
from laneway.errors import InvalidInput
from laneway.store.database import AsyncConn


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A row: its place in the table, its id there, and the values of the plan's expressions."""

    place: str
    id: str
    job_type: str
    payload: Any
    options: Any


async def take(
    conn: AsyncConn, plan: ImportPlan, count: int, without: Sequence[str]
) -> list[ForeignJob]:
    """The next rows, locked; not those that others hold, nor those with the ids `without`."""
    options = "".join(f", ({each})" for each in plan.options.values())
    text = (
        f"select ctid::text, ({plan.id})::text, ({plan.job_type})::text,"
        f" ({plan.payload})::jsonb::text{options} from {plan.table} where ({plan.where})"
    )
    # A percent sign of the plan is not a placeholder.
    query = (
        f"{text.replace('%', '%%')} and not ({plan.id})::text = any (%s)"
        f" order by {plan.id} limit %s for update skip locked"
    )
    rows = await _run(conn, query, (list(without), count))
    return [
        ForeignJob(
            place,
            row_id,
            plan.job_types.get(job_type, job_type),
            json.loads(payload) if payload is not None else None,
            {
                name: value
                for name, value in zip(plan.options, values, strict=True)
                if value is not None
            },
        )
        for place, row_id, job_type, payload, *values in rows
    ]


async def mark(
    conn: AsyncConn, plan: ImportPlan, moved: Sequence[ForeignJob], jobs: Sequence[UUID]
) -> None:
    """Change or delete rows that have become these jobs."""
    places = [each.place for each in moved]
    if plan.moved is None:
        await _run(conn, f"delete from {plan.table} where ctid = any (%s::tid[])", (places,))
        return
    query = (
        f"update {plan.table} set {plan.moved.replace('%', '%%')}"
        " from unnest(%s::tid[], %s::uuid[]) as m (place, job_id) where ctid = m.place"
    )
    await _run(conn, query, (places, list(jobs)))


async def _run(conn: AsyncConn, query: str, values: tuple[object, ...]) -> list[Any]:
    try:
        cursor = await conn.execute(query.encode(), values)
        return await cursor.fetchall() if cursor.description else []
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError) as error:
        where = "" if error.diag.context is None else f" ({error.diag.context})"
        raise InvalidInput("plan", f"{error.diag.message_primary}{where}") from None
