"""The owner, workspace and lane of jobs, by which grants cover them, as a statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from laneway.store.statement import Statement


class JobPlace(NamedTuple):
    """The properties of a job that a grant covers."""

    owner: str | None
    workspace: str
    lane: str


def read(job_ids: Iterable[UUID]) -> Statement[dict[UUID, JobPlace]]:
    """The places of those jobs that exist."""
    return Statement(
        "jobs/read_places",
        lambda rows: {row[0]: JobPlace(*row[1:]) for row in rows},
        {"ids": list(job_ids)},
    )
