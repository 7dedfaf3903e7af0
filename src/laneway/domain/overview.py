"""The overview for operators: lanes, slots, active jobs and workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, NamedTuple
from uuid import UUID

from laneway.domain.annotations import HIDDEN, INLINE, Doc
from laneway.domain.codec import to_json
from laneway.domain.job import Job, Progress
from laneway.domain.lane import ANALYSIS_LANE, Lane
from laneway.domain.states import Status

# Depths are counted up to this.
DEPTH_BOUND: Final = 10_000

# Workers report this often. One that missed two reports is silent, later it counts as dead; SQL has
# the same figures.
TOUCH_S: Final = 5.0
SILENT_S: Final = 2 * TOUCH_S + 2.0
DEAD_S: Final = 45.0

# A worker runs inside an application or server, connects to the database itself, or uses a server.
Transport = Literal["in_process", "database", "grpc"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The pause gate: while it is closed, no job is claimed."""

    paused: bool
    paused_at: datetime | None
    paused_by: str | None


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """A running job: the slot it holds, since when, and its worker."""

    id: UUID
    lane: str
    job_type: str
    attempt: int
    retries: int
    claimed_by: UUID
    worker: str | None
    claimed_at: datetime
    lease_until: datetime
    held_s: float
    cancel_requested_at: datetime | None
    progress: Progress | None

    @property
    def tries(self) -> int | None:
        """Starts that the retry budget counts; None for an analysis."""
        return None if self.lane == ANALYSIS_LANE else self.retries + 1


@dataclass(frozen=True, slots=True)
class JobSummary:
    """The main fields of a job; `GET /jobs/{id}` returns all."""

    id: UUID
    job_type: str
    lane: str
    workspace: str
    status: Status
    priority: int
    attempt: int
    claimed_by: UUID | None
    worker: str | None
    cancel_requested_at: datetime | None

    @classmethod
    def of(cls, job: Job) -> JobSummary:
        """The summary of a job."""
        return cls(**{each.name: getattr(job, each.name) for each in fields(cls)})


WorkerState = Literal["live", "dead", "stopped"]


@dataclass(frozen=True, slots=True)
class RoomUse:
    """Used and total capacity of one kind in a worker process."""

    used: int
    total: int


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process."""

    computed: ClassVar = ("state",)

    id: UUID
    name: str
    host: str
    pid: int
    code: str
    transport: Annotated[
        Transport,
        Doc(
            "How it reaches the database: inside an application, with its own login,"
            " or through a server"
        ),
    ]
    job_types: list[str]
    lanes: Annotated[list[str] | None, Doc("null: all")]
    concurrency: int
    memory_bytes: Annotated[
        int | None, Doc("Resident set of its process when it was last seen; null: unknown")
    ]
    started_at: datetime
    seen_at: datetime
    drain_requested_at: Annotated[
        datetime | None,
        Doc("When an operator drained it: it finishes its jobs and claims no more"),
    ]
    drain_requested_by: str | None
    is_live: bool
    running: int
    is_leader: bool
    room: Annotated[
        dict[str, RoomUse],
        Doc(
            "Used and total capacity by isolation, when it was last seen;"
            " `slots`: all kinds together, if the worker bounds them"
        ),
    ]
    is_stopping: Annotated[
        bool, Doc("It finishes its jobs and takes no more; false once it has ended")
    ] = False
    stopped_at: Annotated[datetime | None, HIDDEN] = None
    seen_s: Annotated[
        float, Doc("Seconds since its last heartbeat, by the database's clock; usually below 5")
    ] = field(default=0.0, compare=False)

    @property
    def runs_jobs(self) -> bool:
        """False for a server that only leads. A stopping remote worker has no capacity left."""
        return self.concurrency > 0 or self.transport == "grpc"

    @property
    def state(
        self,
    ) -> Annotated[WorkerState, Doc("dead: no heartbeat for 45 s, and it did not stop regularly")]:
        if self.is_live:
            return "live"
        return "dead" if self.stopped_at is None else "stopped"


def without_replacement(workers: Iterable[WorkerRow]) -> list[WorkerRow]:
    """Dead workers that run jobs and that no later worker replaces.

    A replacement started after the last heartbeat of the dead worker, and has its name or the same
    job types and lanes. It replaces one worker, even if it has ended since.
    """
    running = [worker for worker in workers if worker.runs_jobs]
    later = sorted(running, key=lambda worker: worker.started_at)
    lost = []
    for dead in sorted(running, key=lambda worker: worker.seen_at):
        if dead.state != "dead":
            continue
        found = next((i for i, one in enumerate(later) if _replaces(one, dead)), None)
        if found is None:
            lost.append(dead)
        else:
            del later[found]
    return lost


def _replaces(worker: WorkerRow, dead: WorkerRow) -> bool:
    return worker.started_at > dead.seen_at and (
        worker.name == dead.name
        or (set(worker.job_types) == set(dead.job_types) and worker.lanes == dead.lanes)
    )


@dataclass(frozen=True, slots=True)
class OldSnapshot:
    """A transaction of another application that keeps dead rows from being removed."""

    pid: int
    application: str
    user: str
    state: str | None
    age_s: float


class Blocker(NamedTuple):
    """A session that holds locks that Laneway needs; `waiting` counts the blocked sessions."""

    pid: int
    application: str
    user: str
    state: str
    age_s: float
    waiting: int

    def describe(self) -> str:
        state = f", {self.state}" if self.state else ""
        session = f"{self.application or 'no name'}, {self.user}{state}"
        held = f"has held locks that Laneway needs for {self.age_s:.0f} s"
        return f"pid {self.pid} ({session}) {held}"

    @property
    def end_command(self) -> str:
        """The SQL that ends the session."""
        return f"select pg_terminate_backend({self.pid});"


DepthIsCapped = Annotated[bool, Doc("There are more than `depth`")]


@dataclass(frozen=True, slots=True)
class TypeLoad:
    """Due jobs of one job type."""

    job_type: str
    depth: int
    depth_is_capped: DepthIsCapped
    oldest_wait_s: float | None


@dataclass(frozen=True, slots=True)
class PriorityLoad(TypeLoad):
    """Due jobs of one job type and priority."""

    priority: int


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """A lane, its slots in use and the jobs that wait in it."""

    computed: ClassVar = ("frozen", "utilization", "depth", "depth_is_capped", "oldest_wait_s")

    lane: Annotated[Lane, INLINE]
    slots_used: int
    waiting: tuple[TypeLoad, ...] = ()
    frozen_by: str | None = None

    @property
    def frozen(self) -> bool:
        return self.frozen_by is not None

    @property
    def depth(self) -> Annotated[int, Doc("Due jobs")]:
        """Due jobs, counted up to DEPTH_BOUND."""
        return min(DEPTH_BOUND, self._counted)

    @property
    def depth_is_capped(self) -> DepthIsCapped:
        return self._counted > DEPTH_BOUND or any(each.depth_is_capped for each in self.waiting)

    @property
    def _counted(self) -> int:
        return sum(each.depth for each in self.waiting)

    @property
    def oldest_wait_s(self) -> float | None:
        waits = [each.oldest_wait_s for each in self.waiting if each.oldest_wait_s is not None]
        return max(waits, default=None)

    @property
    def utilization(
        self,
    ) -> Annotated[float | None, Doc("Slots used of those there are; null: no bound, no slot")]:
        return self.slots_used / self.lane.max_slots if self.lane.max_slots else None


@dataclass(frozen=True, slots=True)
class LaneDetail(LaneStatus):
    """A lane, its slots in use, and the jobs that wait in it also by priority."""

    by_priority: Annotated[tuple[PriorityLoad, ...], Doc("The highest first; at most 1,000")] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """Lanes, running jobs and workers at a glance."""

    gate: Gate
    lanes: list[LaneStatus]
    active: list[ActiveJob]
    workers: list[WorkerRow]
    oldest_transaction: OldSnapshot | None = None

    @property
    def live(self) -> list[WorkerRow]:
        return [worker for worker in self.workers if worker.is_live]

    @property
    def dead(self) -> list[WorkerRow]:
        return [worker for worker in self.workers if worker.state == "dead"]

    @property
    def leader(self) -> WorkerRow | None:
        return next((worker for worker in self.workers if worker.is_leader), None)

    def to_dict(self) -> dict[str, object]:
        shown: dict[str, object] = {
            **to_json(self.gate),
            "leader": str(self.leader.id) if self.leader else None,
            "lanes": to_json(self.lanes),
            "active": to_json(self.active),
            "workers": to_json(self.live),
            "silent": to_json(self.dead),
        }
        if self.oldest_transaction is not None:
            shown["oldest_transaction"] = to_json(self.oldest_transaction)
        return shown
