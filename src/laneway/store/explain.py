"""What decides whether a job can start, as one statement."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from laneway.store.statement import Row, Statement


class LimitFacts(NamedTuple):
    """A limit of the job's type: its room now, who needs it before, and jobs that hold it.

    `next_lane` has the next turn, for a job or call of `next_priority`; None: nobody waits.
    """

    name: str
    room: int | None
    before: int
    max_concurrent: int | None
    holders: list[UUID]
    next_lane: str | None = None
    next_priority: int | None = None

    @property
    def is_in_the_way(self) -> bool:
        return self.room is not None and self.room <= self.before


class FullWorker(NamedTuple):
    """A worker that could run the job, and has no room of its kind since then."""

    name: str
    kind: str
    used: int
    total: int
    since: datetime


class Facts(NamedTuple):
    """Everything around one job that can keep it from starting.

    `ahead` is None unless the job is due, `can_run` counts those of them that no limit holds up;
    `due_in_s` is None unless it is delayed, what is said of a lease unless it runs: `lapsed_s` is
    below 0 while it lasts. `key_holder` has its key or goes first for it; `key_ahead` wait for it
    before this one. Workers are counted `live`, of those `knowing` its type, of those `serving` its
    lane, of those `drained` one by one and, with those that have longest been so first, `full`
    ones. `per_s` is how many jobs of the lane ended per second of
    late, `run_s` how long those of the type ran.
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
    can_run: int | None
    limits: list[LimitFacts]
    key_holder: UUID | None
    key_waits: bool
    key_ahead: int
    lapsed_s: float | None
    lease_until: datetime | None
    lease_s: int | None
    is_watched: bool
    is_published: bool
    two_person: bool
    live: int
    knowing: int
    serving: int
    drained: int
    per_s: float | None
    run_s: float | None
    full: list[FullWorker]


def _facts(rows: list[Row]) -> Facts | None:
    if not rows:
        return None
    *head, ahead, can_run, limits, limit_holders, key_holder = rows[0][:14]
    held = json.loads(limit_holders or "{}")
    full = [
        FullWorker(**{**one, "since": datetime.fromisoformat(one["since"])})
        for one in json.loads(rows[0][-1] or "[]")
    ]
    told = [
        LimitFacts(
            one["name"],
            one["room"],
            one["before"],
            one["max"],
            list(map(UUID, held[one["name"]] or ())),
            *((turn["lane"], turn["priority"]) if (turn := one["next"]) else ()),
        )
        for one in json.loads(limits or "[]")
    ]
    return Facts._make([*head, ahead, can_run, told, key_holder, *rows[0][14:-1], full])


def facts(job_id: UUID, *, bound: int = 10_000, holders: int = 5) -> Statement[Facts | None]:
    """Reads the facts; jobs ahead over the bound are told as bound + 1."""
    return Statement("jobs/explain_job", _facts, {"id": job_id, "bound": bound, "holders": holders})


def own_ahead(job_id: UUID, owner: str, limit: int = 5) -> Statement[list[UUID]]:
    """The first jobs of one submitter that wait before this one in its lane."""
    params = {"id": job_id, "owner": owner, "limit": limit}
    return Statement("jobs/find_own_ahead", lambda rows: [row[0] for row in rows], params)
