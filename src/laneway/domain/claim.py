"""The fencing token a worker holds while it runs a job."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID


class Claim(NamedTuple):
    """One attempt of one job; every write about running work names it.

    `seq` is the job's internal number, which the store joins on, and `job_id` its public id.
    `attempt` grows by one at every claim and is never reused, so an older Claim of the same job
    differs from the one that runs.
    """

    seq: int
    job_id: UUID
    attempt: int
