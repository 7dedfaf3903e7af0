"""Many new jobs in one transaction: by COPY where the driver has it, else by one insert."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from laneway.domain.job import DEFAULT_MAX_RETRIES, NewJob
from laneway.domain.states import Status
from laneway.store import copytext, jobs
from laneway.store.copytext import NewRow, array_literal
from laneway.store.database import Database
from laneway.store.foreign import Borrowed, borrow
from laneway.store.jobs import Submitted
from laneway.store.statement import Row, Statement, nothing

Key = tuple[str, str, str]


class Opening(NamedTuple):
    """What a batch starts from: the database's clock, numbers, and (priority, max_retries) by type."""

    now: str
    seqs: list[int]
    defaults: dict[str, list[int]]


def open_batch(new: Sequence[NewJob]) -> Statement[Opening]:
    """Numbers for the jobs, the clock, and the defaults of their types."""
    return Statement(
        "jobs/open_batch",
        lambda rows: Opening(rows[0][0], rows[0][1], json.loads(rows[0][2] or "{}")),
        {"count": len(new), "job_types": list({job.job_type for job in new})},
    )


def insert_batch(rows: Sequence[NewRow], now: str) -> Statement[None]:
    """Stores the rows by one statement."""
    new = [row.job for row in rows]
    return Statement(
        "jobs/insert_batch",
        nothing,
        {
            "now": now,
            "seqs": [row.seq for row in rows],
            "ids": [job.id for job in new],
            "job_types": [job.job_type for job in new],
            "workspaces": [job.workspace for job in new],
            "payloads": [job.payload for job in new],
            "priorities": [row.priority for row in rows],
            "max_retries": [row.max_retries for row in rows],
            "run_ats": [row.run_at for row in rows],
            "unique_keys": [job.unique_key for job in new],
            "tags": [array_literal(job.tags) for job in new],
            "created_bys": [job.created_by for job in new],
            "traceparents": [job.traceparent for job in new],
        },
    )


async def submit_batch(database: Database, new: Sequence[NewJob]) -> list[Submitted]:
    """Stores jobs in a transaction of our own: all of them or none."""
    async with database.connection() as conn, conn.transaction():
        return await store_batch(borrow(conn), new)


async def store_batch(conn: Borrowed, new: Sequence[NewJob]) -> list[Submitted]:
    """Stores checked jobs in the transaction of the connection; answers in the order given."""
    if not new:
        return []
    opening = await conn.run(open_batch(new))
    holders = await _take_keys(conn, new, opening.seqs)
    answers = [Submitted(job.id, Status.APPROVED.value, False) for job in new]
    if holders:
        for i, holder in holders.items():
            answers[i] = holder
        chosen = [i for i in range(len(new)) if i not in holders]
        new = [new[i] for i in chosen]
        opening = opening._replace(seqs=[opening.seqs[i] for i in chosen])
    if new:
        await _store(conn, _rows(new, opening), opening.now)
    return answers


async def _take_keys(
    conn: Borrowed, new: Sequence[NewJob], seqs: Sequence[int]
) -> dict[int, Submitted]:
    """Takes the unique keys; answers the live job that holds it for each that did not get its own."""
    first: dict[Key, int] = {}
    repeated: dict[int, Key] = {}
    for i, job in enumerate(new):
        if job.unique_key is not None:
            key = (job.workspace, job.job_type, job.unique_key)
            if first.setdefault(key, i) != i:
                repeated[i] = key
    if not first:
        return {}
    holders: dict[int, Submitted] = {}
    missing = dict(first)
    while missing:
        wanted = list(missing.values())
        taken = await conn.run(
            jobs.reserve_keys([new[i] for i in wanted], [seqs[i] for i in wanted])
        )
        missing = {key: i for key, i in missing.items() if seqs[i] not in taken}
        if missing:
            found = await conn.run(_find_keys([new[i] for i in missing.values()]))
            holders |= {i: found[key] for key, i in missing.items() if key in found}
            # A holder that ended in between has left its key free again.
            missing = {key: i for key, i in missing.items() if key not in found}
    for i, key in repeated.items():
        original = first[key]
        holders[i] = holders.get(original) or Submitted(
            new[original].id, Status.APPROVED.value, True
        )
    return holders


def _find_keys(new: Sequence[NewJob]) -> Statement[dict[Key, Submitted]]:
    def decode(rows: list[Row]) -> dict[Key, Submitted]:
        return {(r[0], r[1], r[2]): Submitted(r[3], r[4], True) for r in rows}

    return Statement("jobs/find_keys", decode, jobs.find_keys(new).params)


def _rows(new: Sequence[NewJob], opening: Opening) -> list[NewRow]:
    """The same decisions as in laneway.submit."""
    plain: list[Any] = [0, DEFAULT_MAX_RETRIES]
    clock = datetime.fromisoformat(opening.now)
    rows = []
    for seq, job in zip(opening.seqs, new, strict=True):
        priority, max_retries = opening.defaults.get(job.job_type, plain)
        run_at = due = None
        if job.run_at is not None or job.delay is not None:
            at = job.run_at or clock + timedelta(seconds=job.delay or 0)
            run_at = at.astimezone(UTC).isoformat()
            due = run_at if at > clock else None
        rows.append(
            NewRow(
                seq,
                job,
                priority if job.priority is None else job.priority,
                max_retries if job.max_retries is None else job.max_retries,
                run_at,
                due,
            )
        )
    return rows


async def _store(conn: Borrowed, rows: Sequence[NewRow], now: str) -> None:
    if not conn.can_copy:
        await conn.run(insert_batch(rows, now))
        return
    await conn.copy(copytext.JOBS, copytext.jobs_data(rows, now))
    ready = [row for row in rows if row.due is None]
    if ready:
        await conn.copy(copytext.READY, copytext.ready_data(ready, now))
    if len(ready) < len(rows):
        delayed = [row for row in rows if row.due is not None]
        await conn.copy(copytext.DELAYED, copytext.delayed_data(delayed))
