"""The overview for operators: lanes, slots, active jobs and workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, NamedTuple
from uuid import UUID

from laneway.domain.annotations import INLINE, Doc
from laneway.domain.codec import to_json
from laneway.domain.lane import ANALYSIS_LANE, Lane

if TYPE_CHECKING:
    from laneway.domain.job import Progress

# Depths are counted up to this.
DEPTH_BOUND: Final = 10_000

# Workers report this often. One that missed two reports is silent, later it counts as dead; SQL has
# the same figures.
TOUCH_S: Final = 5.0
SILENT_S: Final = 2 * TOUCH_S + 2.0
DEAD_S: Final = 45.0

# A worker runs inside an application or server, connects to the database itself, or uses a server.
Transport = Literal["in_process", "database", "grpc"]


class Gate(NamedTuple):
    """The pause gate: while paused, nothing is claimed."""

    paused: bool
    paused_at: datetime | None
    paused_by: str | None


class ActiveJob(NamedTuple):
    """A job that holds a slot."""

    lane: str
    id: UUID
    job_type: str
    attempt: int
    worker_id: UUID
    worker: str | None
    claimed_at: datetime
    lease_until: datetime
    held_s: float
    cancel_requested_at: datetime | None
    stage: str | None
    done: float | None
    total: float | None
    message: str | None
    retries: int = 0

    @property
    def tries(self) -> int | None:
        """Starts that the retry budget counts; None for an analysis."""
        return None if self.lane == ANALYSIS_LANE else self.retries + 1


WorkerState = Literal["live", "dead", "stopped"]


class RoomUse(NamedTuple):
    """Places of one kind in a worker process: used and total."""

    used: int
    total: int


class WorkerRow(NamedTuple):
    """A worker process as operators see it."""

    id: UUID
    name: str
    host: str
    pid: int
    code: str
    transport: Transport
    job_types: list[str]
    lanes: list[str] | None
    concurrency: int
    memory_bytes: int | None
    started_at: datetime
    seen_at: datetime
    drain_requested_at: datetime | None
    drain_requested_by: str | None
    stopped_at: datetime | None
    is_live: bool
    running: int
    is_leader: bool
    # By isolation, as last published; also `slots` if all kinds together are bounded.
    room: dict[str, RoomUse]
    # It finishes its jobs and takes no more.
    is_stopping: bool = False

    @property
    def state(self) -> WorkerState:
        """`dead`: it stopped reporting without a clean stop."""
        if self.is_live:
            return "live"
        return "dead" if self.stopped_at is None else "stopped"


class OldSnapshot(NamedTuple):
    """A transaction of another program that pins dead rows."""

    pid: int
    application: str
    user: str
    state: str | None
    age_s: float


class Blocker(NamedTuple):
    """A session that holds locks that claims need; `waiting` counts the blocked sessions."""

    pid: int
    application: str
    user: str
    state: str
    age_s: float
    waiting: int

    def describe(self) -> str:
        state = f", {self.state}" if self.state else ""
        session = f"{self.application or 'no name'}, {self.user}{state}"
        return f"pid {self.pid} ({session}) has held locks that claims need for {self.age_s:.0f} s"


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
    """Everything that an operator looks at first."""

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
            "paused": self.gate.paused,
            "paused_at": self.gate.paused_at.isoformat() if self.gate.paused_at else None,
            "paused_by": self.gate.paused_by,
            "leader": str(self.leader.id) if self.leader else None,
            "lanes": to_json(self.lanes),
            "active": [active_to_dict(each) for each in self.active],
            "workers": [worker_to_dict(each) for each in self.live],
            "silent": [worker_to_dict(each) for each in self.dead],
        }
        if self.oldest_transaction is not None:
            shown["oldest_transaction"] = self.oldest_transaction._asdict()
        return shown


def active_progress(job: ActiveJob) -> Progress | None:
    """The progress of an active job, if it reported any."""
    # Imported here, because the help of commands does not need it.
    from laneway.domain.job import Progress

    if (job.stage, job.done, job.total, job.message) == (None, None, None, None):
        return None
    return Progress.of(job.done, job.total, job.message, job.stage)


def active_to_dict(job: ActiveJob) -> dict[str, object]:
    progress = active_progress(job)
    requested = job.cancel_requested_at
    return {
        "id": str(job.id),
        "lane": job.lane,
        "job_type": job.job_type,
        "attempt": job.attempt,
        "retries": job.retries,
        "claimed_by": str(job.worker_id),
        "worker": job.worker,
        "claimed_at": job.claimed_at.isoformat(),
        "lease_until": job.lease_until.isoformat(),
        "held_s": round(float(job.held_s), 3),
        "cancel_requested_at": requested.isoformat() if requested else None,
        "progress": progress.to_dict() if progress else None,
    }


def worker_to_dict(worker: WorkerRow) -> dict[str, object]:
    requested = worker.drain_requested_at
    return {
        "id": str(worker.id),
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "code": worker.code,
        "transport": worker.transport,
        "job_types": worker.job_types,
        "lanes": worker.lanes,
        "concurrency": worker.concurrency,
        "running": worker.running,
        "room": {kind: use._asdict() for kind, use in worker.room.items()},
        "memory_bytes": worker.memory_bytes,
        "is_live": worker.is_live,
        "state": worker.state,
        "is_stopping": worker.is_stopping,
        "is_leader": worker.is_leader,
        "drain_requested_at": requested.isoformat() if requested else None,
        "drain_requested_by": worker.drain_requested_by,
        "started_at": worker.started_at.isoformat(),
        "seen_at": worker.seen_at.isoformat(),
    }
