"""Facts that decide whether a job can start, as one statement."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from laneway.domain.overview import SILENT_S
from laneway.store.statement import Row, Statement, first_column


class LimitFacts(NamedTuple):
    """A limit of the job's type: its free capacity, how many need it earlier, and its holders.

    `next_lane` has the next turn, for a job or call of `next_priority`; None: none waits.
    """

    name: str
    room: int | None
    before: int
    max_concurrent: int | None
    holders: list[UUID]
    next_lane: str | None = None
    next_priority: int | None = None

    @property
    def is_blocking(self) -> bool:
        return self.room is not None and self.room <= self.before


class Candidate(NamedTuple):
    """A live worker that serves the job's lane and type, and was not drained by an operator.

    `full_since`: without a free slot for the lane since then; `capacity` names what is used up.
    `free` of `total`: the jobs of its kind that it has room for, as last reported; None: unknown.
    """

    name: str
    seen_at: datetime
    unseen_s: float
    is_stopping: bool
    full_since: datetime | None
    capacity: str
    free: int | None = None
    total: int | None = None

    @property
    def is_silent(self) -> bool:
        return not self.is_stopping and self.unseen_s > SILENT_S

    @property
    def is_full(self) -> bool:
        return not self.is_stopping and not self.is_silent and self.full_since is not None


class LastSeen(NamedTuple):
    """The last worker that could run the job; `stopped_at`: when its stream or process ended."""

    name: str
    seen_at: datetime
    stopped_at: datetime | None


class RunningJob(NamedTuple):
    """A job that runs in the lane, and for how long."""

    job_type: str
    ran_s: float


class Facts(NamedTuple):
    """Everything around one job that can keep it from starting.

    - `ahead`: due jobs before it, None unless it is due; `can_run`: those that no limit delays;
      `passed`: further jobs that claims skip, because no live worker handles their type.
    - `due_in_s`: None without a start time, and once a claim may take it or has taken it.
      Lease fields: None unless it runs; `lapsed_s` is negative while the lease lasts.
    - `key_holder`: the job that holds or first gets its key; `key_ahead`: jobs that wait for the
      key before it.
    - `sent_back_to`: the state to which the next claim moves it, because its type now needs an
      analysis or approval that the job lacks.
    - `live` workers; `knowing`: those with its type; `serving`: of these, those of its lane;
      `drained`: of these, those drained one by one; `candidates`: the rest of these.
    - `last_seen`: the last worker that served it, if none is live.
    - `waits_for`: the jobs for which its handler waits, as far as noted.
    - `per_s`: recent ends per second in the lane; `run_s`: recent run time of the type;
      `type_run_s`: of the types of the lane; `lane_run_s`: of all its jobs.
    - `types_ahead`: the number of due jobs before it by type; `running`: jobs that run in the lane.
    - `read_at`: the time of these facts, by the database's clock.
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
    sent_back_to: str | None
    live: int
    knowing: int
    serving: int
    drained: int
    per_s: float | None
    run_s: float | None
    candidates: list[Candidate]
    last_seen: LastSeen | None
    passed: int
    waits_for: list[UUID]
    types_ahead: dict[str, int]
    type_run_s: dict[str, float]
    lane_run_s: float | None
    running: list[RunningJob]
    read_at: datetime


def _facts(rows: list[Row]) -> Facts | None:
    if not rows:
        return None
    *head, ahead, can_run, limits, limit_holders, key_holder = rows[0][:14]
    held = json.loads(limit_holders or "{}")
    *tail, candidates, name, seen_at, stopped_at, handled, passed, unlimited = rows[0][14:-6]
    waited, types_ahead, type_run_s, lane_run_s, running, read_at = rows[0][-6:]
    if passed:
        # The skipped jobs without limits were counted in can_run.
        ahead, can_run = handled, min(handled, max(0, can_run - unlimited))
    workers = [_candidate(worker) for worker in json.loads(candidates or "[]")]
    last_seen = None if name is None else LastSeen(name, seen_at, stopped_at)
    wanted = [
        LimitFacts(
            limit["name"],
            limit["room"],
            limit["before"],
            limit["max"],
            list(map(UUID, held[limit["name"]] or ())),
            *((turn["lane"], turn["priority"]) if (turn := limit["next"]) else ()),
        )
        for limit in json.loads(limits or "[]")
    ]
    return Facts._make(
        [*head, ahead, can_run, wanted, key_holder, *tail, workers, last_seen, passed or 0, waited,
         json.loads(types_ahead or "{}"), json.loads(type_run_s or "{}"), lane_run_s,
         [RunningJob(*each) for each in json.loads(running or "[]")], read_at]
    )  # fmt: skip


def _candidate(read: dict[str, Any]) -> Candidate:
    since = read["full_since"]
    used = [use for use in (read["place"], read["slots"]) if use is not None]
    return Candidate(
        read["name"],
        datetime.fromisoformat(read["seen_at"]),
        read["unseen_s"],
        read["is_stopping"],
        None if since is None else datetime.fromisoformat(since),
        "" if since is None else _capacity(read["kind"], read["place"], read["slots"]),
        min(map(_free, used), default=None),
        min((use["total"] for use in used), default=None),
    )


def _capacity(kind: str, used: dict[str, int] | None, slots: dict[str, int] | None) -> str:
    """The capacity that is used up: that of the isolation kind, or the worker's slots."""
    if used is None or (slots is not None and _free(slots) <= _free(used)):
        kind, used = "slots", slots
    return f"{kind} {used['used']} of {used['total']}" if used else kind


def _free(use: dict[str, int]) -> int:
    return use["total"] - use["used"]


def facts(job_id: UUID, *, bound: int = 10_000, holders: int = 5) -> Statement[Facts | None]:
    """Reads the facts about a job; more than `bound` jobs ahead count as bound + 1."""
    return Statement("jobs/explain_job", _facts, {"id": job_id, "bound": bound, "holders": holders})


def own_ahead(job_id: UUID, owner: str, limit: int = 5) -> Statement[list[UUID]]:
    """The first jobs of one submitter that wait before this job in its lane."""
    params = {"id": job_id, "owner": owner, "limit": limit}
    return Statement("jobs/find_own_ahead", first_column, params)
