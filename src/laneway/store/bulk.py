"""Progress of bulk actions that a server runs in the background, as statements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from laneway.store.statement import Row, Statement, nothing


@dataclass(frozen=True, slots=True)
class StoredBulkRun:
    """One run: running, done, failed, or interrupted because its server stopped."""

    id: UUID
    principal_id: UUID
    ordered_by: str
    verb: str
    state: str
    done: int
    refused: Mapping[str, int]
    started_at: datetime
    updated_at: datetime


def _run(row: Row) -> StoredBulkRun:
    values = list(row)
    values[6] = json.loads(values[6])
    return StoredBulkRun(*values)


def begin(run_id: UUID, principal_id: UUID, by: str, verb: str) -> Statement[StoredBulkRun]:
    return Statement(
        "bulk/begin_run",
        lambda rows: _run(rows[0]),
        {"id": run_id, "principal": principal_id, "by": str(by), "verb": verb},
    )


def report(run_id: UUID, state: str, done: int, refused: Mapping[str, int]) -> Statement[None]:
    return Statement(
        "bulk/report_run",
        nothing,
        {"id": run_id, "state": state, "done": done, "refused": json.dumps(refused)},
    )


def read(run_id: UUID) -> Statement[StoredBulkRun | None]:
    return Statement("bulk/read_run", lambda rows: _run(rows[0]) if rows else None, {"id": run_id})
