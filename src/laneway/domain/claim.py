"""The fencing token a worker holds while it runs a job."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID


class Claim(NamedTuple):
    """One attempt of one job: every write about running work names it.

    `seq` is the job's internal number (what the store joins on), `job_id` its public id, and
    `attempt` grows by one at every claim and is never reused, so an older Claim of the same job
    can be told from the one that runs.
    """

    seq: int
    job_id: UUID
    attempt: int
