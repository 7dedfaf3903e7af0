"""What decides whether a job can start, as one statement."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from laneway.store.statement import Statement


class Facts(NamedTuple):
    """Everything around one job that can keep it from starting, as of one snapshot.

    `ahead` is None unless the job is due, `due_in_s` unless it is delayed, `lapsed_s` unless it
    runs; workers are counted `live`, of those `knowing` its type, of those `serving` its lane.
    """

    job_type: str
    lane: str
    paused: bool
    paused_by: str | None
    enabled: bool | None
    max_slots: int | None
    slots_used: int
    holders: list[UUID]
    due_in_s: float | None
    ahead: int | None
    lapsed_s: float | None
    is_published: bool
    live: int
    knowing: int
    serving: int


def facts(job_id: UUID, *, bound: int = 10_000, holders: int = 5) -> Statement[Facts | None]:
    """Reads the facts; jobs ahead over the bound are told as bound + 1."""
    return Statement(
        "jobs/explain_job",
        lambda rows: Facts(*rows[0]) if rows else None,
        {"id": job_id, "bound": bound, "holders": holders},
    )
