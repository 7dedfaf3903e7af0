"""The jobs that a waiting job comes after, as a statement."""

from __future__ import annotations

import json
from typing import Final, NamedTuple
from uuid import UUID

from laneway.store.statement import Row, Statement

# Open edges that are counted, and jobs that are named.
BOUND: Final = 10_000
SHOWN: Final = 5


class OpenParent(NamedTuple):
    """A job that has not satisfied its edge, and what its failure does: cancel, run or hold."""

    id: UUID
    status: str
    rule: str


class OpenParents(NamedTuple):
    """The jobs that a job comes after, those that it still waits for, and a circle of waits."""

    total: int
    missing: int
    first: tuple[OpenParent, ...]
    circle: tuple[UUID, ...]


def read(job_id: UUID) -> Statement[OpenParents | None]:
    """None if the job waits for no other job."""
    return Statement("jobs/read_parents", _decode, {"id": job_id, "bound": BOUND, "shown": SHOWN})


def _decode(rows: list[Row]) -> OpenParents | None:
    if not rows:
        return None
    total, missing, first, circle = rows[0]
    found = [
        OpenParent(UUID(each), status, rule) for each, status, rule in json.loads(first or "[]")
    ]
    return OpenParents(total, missing, tuple(found), tuple(circle or ()))
