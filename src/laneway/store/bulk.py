"""Progress of bulk actions that a server runs in the background, as statements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from laneway.domain.bulk import BulkRun, BulkVerb
from laneway.store.statement import Row, Statement, nothing

_COLUMNS: Final = (
    "id", "principal_id", "ordered_by", "verb", "state", "done", "refused", "started_at",
    "updated_at",
)  # fmt: skip


def _run(row: Row) -> BulkRun:
    found = dict(zip(_COLUMNS, row, strict=True))
    found |= {"verb": BulkVerb(found["verb"]), "refused": json.loads(found["refused"])}
    return BulkRun(**found)


def begin(run_id: UUID, principal_id: UUID, by: str, verb: str) -> Statement[BulkRun]:
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


def read(run_id: UUID) -> Statement[BulkRun | None]:
    return Statement("bulk/read_run", lambda rows: _run(rows[0]) if rows else None, {"id": run_id})
