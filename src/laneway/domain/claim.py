"""The fencing token a worker holds while it runs a job."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from laneway.errors import InvalidInput


class Claim(NamedTuple):
    """One attempt of one job; every write about running work names it.

    `seq` is the job's internal number, which the store joins on, and `job_id` its public id.
    `attempt` grows by one at every claim and is never reused, so an older Claim of the same job
    differs from the one that runs.
    """

    seq: int
    job_id: UUID
    attempt: int


def parse_job_id(job_id: UUID | str) -> UUID:
    """The id of a job; InvalidInput if it is not a UUID."""
    if isinstance(job_id, UUID):
        return job_id
    try:
        return UUID(job_id)
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput("id", "must be a UUID") from None
