"""Handlers that wait for jobs, and what keeps those from starting, as statements."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.store.statement import Row, Statement, scalar

# Handlers that are read. The search for a circle takes at most as many rounds, in the event loop.
BOUND: Final = 500


def note(claim: Claim, waits_for: UUID, *, ends: bool = False) -> Statement[bool | None]:
    """Notes that the attempt waits for a job, or no longer does; False: try again later."""
    return Statement(
        "jobs/note_wait",
        scalar,
        {"job": claim.job_id, "attempt": claim.attempt, "for": waits_for, "ends": ends},
    )


class WaitingRun(NamedTuple):
    """A running job whose handler waits for jobs, and the limits that it holds, one by one."""

    seq: int
    id: UUID
    lane: str
    worker_id: UUID
    limits: tuple[str, ...]
    waits_for: frozenset[int]


class QueuedJob(NamedTuple):
    """A queued job, and what it needs to start.

    `workers`: those that could run it, if all of them are full; otherwise empty.
    """

    seq: int
    id: UUID
    lane: str
    limits: tuple[str, ...]
    key_holder: int | None
    workers: frozenset[UUID]


class Use(NamedTuple):
    """The most slots of a lane, or holders of a limit, and those in use."""

    most: int
    used: int

    @property
    def is_full(self) -> bool:
        return 0 < self.most <= self.used


class WaitGraph(NamedTuple):
    """Running jobs that wait for jobs, the queued ones among those, and what they share."""

    runs: dict[int, WaitingRun]
    queued: dict[int, QueuedJob]
    lanes: dict[str, Use]
    limits: dict[str, Use]
    # Running jobs by worker.
    workers: dict[UUID, int]


def graph(job_id: UUID | None = None, *, bound: int = BOUND) -> Statement[WaitGraph | None]:
    """The handlers that wait for jobs, and this queued job if given; None: no handler waits."""
    return Statement("jobs/find_circle", _graph, {"id": job_id, "bound": bound})


def _graph(rows: list[Row]) -> WaitGraph | None:
    if not rows:
        return None
    runs, queued, lanes, limits, workers = (json.loads(text or "{}") for text in rows[0])
    return WaitGraph(
        {one["seq"]: _run(one) for one in runs},
        {one["seq"]: _queued(one) for one in queued},
        {name: Use(**use) for name, use in lanes.items()},
        {name: Use(**use) for name, use in limits.items()},
        {UUID(worker): used for worker, used in workers.items()},
    )


def _run(read: dict[str, Any]) -> WaitingRun:
    return WaitingRun(
        read["seq"],
        UUID(read["id"]),
        read["lane"],
        UUID(read["worker_id"]),
        tuple(read["limits"]),
        frozenset(read["waits_for"]),
    )


def _queued(read: dict[str, Any]) -> QueuedJob:
    return QueuedJob(
        read["seq"],
        UUID(read["id"]),
        read["lane"],
        tuple(read["limits"]),
        read["key_holder"],
        frozenset(map(UUID, read["workers"] or ())),
    )
