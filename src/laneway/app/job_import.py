"""Moves jobs of another system's table into Laneway, while both run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from laneway.client import Client, JobHandle
from laneway.control.audit import audited
from laneway.domain.actor import Actor
from laneway.domain.job_import import ImportPlan
from laneway.errors import InvalidInput
from laneway.store import foreign_jobs
from laneway.store.database import Database
from laneway.store.foreign_jobs import ForeignJob

# A payload that cannot be read; null can.
_NONE: Final = object()
_PLACE: Final = re.compile(r"jobs\[(\d+)\]\.?(.*)")


class _Undone(Exception):
    """Rolls a dry run back."""


@dataclass(slots=True)
class JobImport:
    """Takes rows in batches. Each batch becomes jobs and is marked in one transaction.

    A row that cannot become a job stays as it is; `refused` has its id and the reason by its key.
    """

    database: Database
    plan: ImportPlan
    by: Actor
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)

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
            await foreign_jobs.check_table(conn, self.plan)
            rows = await foreign_jobs.take(conn, self.plan, count, [*self.refused])
            taken = len(rows)
            moved = await self._submit(client, conn, rows)
            jobs = [handle.id for _, handle in moved]
            if jobs:
                await foreign_jobs.mark(conn, self.plan, [row for row, _ in moved], jobs)
            change.after = {"jobs": len(jobs)}
            change.is_recorded = bool(jobs)
            if dry_run:
                raise _Undone(jobs, taken)
        client.wake([handle for _, handle in moved])
        await client.close()
        return jobs, taken

    async def _submit(
        self, client: Client, conn: Any, rows: list[ForeignJob]
    ) -> list[tuple[ForeignJob, JobHandle[Any]]]:
        """Submit the rows that can become jobs now; refused ones stay."""
        given = [(row, payload) for row in rows if (payload := self._payload(row)) is not _NONE]
        while given:
            jobs = [(row.job_type, payload, row.options) for row, payload in given]
            try:
                # A savepoint: a refused batch must leave nothing of itself.
                async with conn.transaction():
                    handles = await client.submit_many(jobs, conn=conn)
            except InvalidInput as error:
                found = _PLACE.fullmatch(error.field)
                if found is not None:
                    row, _ = given.pop(int(found[1]))
                    self._refuse(row, str(InvalidInput(found[2] or "job", error.rule)))
                elif len(given) > 1:
                    # Together they are too large: the others have their turn later.
                    del given[len(given) // 2 :]
                else:
                    raise
            else:
                pairs = [(row, handle) for (row, _), handle in zip(given, handles, strict=True)]
                for row, handle in pairs:
                    if handle.duplicate:
                        self._refuse(row, f"unique_key: job {handle.id} has it")
                return [pair for pair in pairs if not pair[1].duplicate]
        return []

    def _payload(self, row: ForeignJob) -> Any:
        try:
            return row.read_payload()
        except ValueError as error:
            self._refuse(row, f"payload: {error}")
            return _NONE

    def _refuse(self, row: ForeignJob, why: str) -> None:
        self.refused[row.key] = row.id, why
