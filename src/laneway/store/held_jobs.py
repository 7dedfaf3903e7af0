"""Waiting jobs that a person must release, as statements."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from laneway.store.statement import Statement, one_row


class HeldJobs(NamedTuple):
    """Jobs that wait until a job that has failed or was cancelled is retried."""

    jobs: int
    first: UUID | None
    parent: UUID | None


def find_held(*, look: int) -> Statement[HeldJobs]:
    """Jobs that a person must release, with the first one and the job that it waits for."""
    return Statement("health/find_held", one_row(HeldJobs), {"look": look})
