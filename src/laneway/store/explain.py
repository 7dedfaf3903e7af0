"""What decides whether a job can start, as one statement."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from laneway.domain.overview import SILENT_S
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


class Candidate(NamedTuple):
    """A live worker that serves the job's lane and type, and was not drained by an operator.

    `full_since`: it has had no room for the lane since then; `place` names the room it lacks.
    """

    name: str
    seen_at: datetime
    unseen_s: float
    is_stopping: bool
    full_since: datetime | None
    place: str

    @property
    def is_silent(self) -> bool:
        return not self.is_stopping and self.unseen_s > SILENT_S

    @property
    def is_full(self) -> bool:
        return not self.is_stopping and not self.is_silent and self.full_since is not None


class LastSeen(NamedTuple):
    """A worker that would have run the job, and died; `stopped_at`: its stream or process ended."""

    name: str
    seen_at: datetime
    stopped_at: datetime | None


class Facts(NamedTuple):
    """Everything around one job that can keep it from starting.

    `ahead` is None unless the job is due, `can_run` counts those of them that no limit holds up,
    `passed` counts jobs besides them that claims pass, because no live worker handles their type;
    `due_in_s` is None unless it is delayed, what is said of a lease unless it runs: `lapsed_s` is
    below 0 while it lasts. `key_holder` has its key or goes first for it; `key_ahead` wait for it
    before this one. `sent_back_to`: the next claim moves it to this state, because its type now
    asks for more than the job has. Workers are counted `live`, of those `knowing` its type, of
    those `serving` its lane, of those `drained` one by one; the others are `candidates`.
    `last_seen` is the last worker that served it, where none lives. `per_s` is how many
    jobs of the lane ended per second of late, `run_s` how long those of the type ran.
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


def _facts(rows: list[Row]) -> Facts | None:
    if not rows:
        return None
    *head, ahead, can_run, limits, limit_holders, key_holder = rows[0][:14]
    held = json.loads(limit_holders or "{}")
    *tail, candidates, name, seen_at, stopped_at, handled, passed, unlimited = rows[0][14:]
    if passed:
        # Limits hold up none of the unlimited, so that they were counted.
        ahead, can_run = handled, min(handled, max(0, can_run - unlimited))
    known = [_candidate(one) for one in json.loads(candidates or "[]")]
    last_seen = None if name is None else LastSeen(name, seen_at, stopped_at)
    wanted = [
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
    return Facts._make(
        [*head, ahead, can_run, wanted, key_holder, *tail, known, last_seen, passed or 0]
    )


def _candidate(read: dict[str, Any]) -> Candidate:
    since = read["full_since"]
    return Candidate(
        read["name"],
        datetime.fromisoformat(read["seen_at"]),
        read["unseen_s"],
        read["is_stopping"],
        None if since is None else datetime.fromisoformat(since),
        "" if since is None else _place(read["kind"], read["place"], read["slots"]),
    )


def _place(kind: str, place: dict[str, int] | None, slots: dict[str, int] | None) -> str:
    """The room that is used up: that of the isolation, or the worker's slots."""
    if place is None or (slots is not None and _left(slots) <= _left(place)):
        kind, place = "slots", slots
    return f"{kind} {place['used']} of {place['total']}" if place else kind


def _left(use: dict[str, int]) -> int:
    return use["total"] - use["used"]


def facts(job_id: UUID, *, bound: int = 10_000, holders: int = 5) -> Statement[Facts | None]:
    """Reads the facts; more than `bound` jobs ahead count as bound + 1."""
    return Statement("jobs/explain_job", _facts, {"id": job_id, "bound": bound, "holders": holders})


def own_ahead(job_id: UUID, owner: str, limit: int = 5) -> Statement[list[UUID]]:
    """The first jobs of one submitter that wait before this one in its lane."""
    params = {"id": job_id, "owner": owner, "limit": limit}
    return Statement("jobs/find_own_ahead", lambda rows: [row[0] for row in rows], params)
