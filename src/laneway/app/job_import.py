"""Moves jobs of another system's table into Laneway, while both run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from laneway.client import Client
from laneway.control.audit import audited
from laneway.domain.actor import Actor
from laneway.domain.job_import import ImportPlan
from laneway.errors import InvalidInput
from laneway.store import foreign_jobs
from laneway.store.database import Database
from laneway.store.foreign_jobs import ForeignJob

_PLACE: Final = re.compile(r"jobs\[(\d+)\]\.?(.*)")


class _Undone(Exception):
    """Rolls a dry run back."""


@dataclass(slots=True)
class JobImport:
    """Takes rows in batches. Each batch becomes jobs and is marked in one transaction.

    A row that cannot become a job stays as it is; `refused` has its id and the reason.
    """

    database: Database
    plan: ImportPlan
    by: Actor
    refused: dict[str, str] = field(default_factory=dict)

    async def move(self, count: int, *, dry_run: bool = False) -> list[UUID]:
        """Move the next rows, at most `count`; return the ids of their jobs."""
        while True:
            try:
                moved, taken = await self._move(count, dry_run=dry_run)
            except _Undone as undone:
                moved, taken = undone.args
            # A batch of nothing but refused rows is not the end.
            if moved or not taken:
                return moved

    async def _move(self, count: int, *, dry_run: bool) -> tuple[list[UUID], int]:
        client = Client(self.database, self.database.settings)
        async with (
            self.database.joined() as one,
            audited(one, self.by, "job.imported", "table", self.plan.table) as change,
            one.connection() as conn,
        ):
            rows = await foreign_jobs.take(conn, self.plan, count, [*self.refused])
            taken = len(rows)
            handles = await self._submit(client, conn, rows)
            jobs = [each.id for each in handles]
            if jobs:
                await foreign_jobs.mark(conn, self.plan, rows, jobs)
            change.after = {"jobs": len(jobs)}
            change.is_recorded = bool(jobs)
            if dry_run:
                raise _Undone(jobs, taken)
        client.wake(handles)
        await client.close()
        return jobs, taken

    async def _submit(self, client: Client, conn: Any, rows: list[ForeignJob]) -> Sequence[Any]:
        """Submit all rows that can become jobs; the others are taken from `rows`."""
        while rows:
            given = [(each.job_type, each.payload, each.options) for each in rows]
            try:
                return await client.submit_many(given, conn=conn)
            except InvalidInput as error:
                found = _PLACE.fullmatch(error.field)
                if found is None:
                    raise
                row = rows.pop(int(found[1]))
                self.refused[row.id] = str(InvalidInput(found[2] or "job", error.rule))
        return []
