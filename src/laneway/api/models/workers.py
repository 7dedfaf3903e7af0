"""Request and response models of workers, slots and the pause gate."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field

from laneway.api.http.paging import RequestBody
from laneway.api.models.jobs import ProgressOut
from laneway.domain.job import PRIORITY_RANGE, Job
from laneway.domain.lane import LaneName
from laneway.domain.overview import LaneStatus, Transport, WorkerState
from laneway.domain.states import Status
from laneway.operations.models import output_model

LONGEST_DEADLINE_S = 10.0

LaneStatusOut = output_model(LaneStatus)
Lanes = Annotated[list[LaneName], Field(max_length=1000, fail_fast=True)]


class GateOut(BaseModel):
    """The pause gate: while it is closed, no job is claimed."""

    paused: bool
    paused_at: datetime | None
    paused_by: str | None


class FreezeRequest(RequestBody):
    """The lanes to drain, and how long the response may wait for them."""

    lanes: Lanes | None = Field(default=None, description="null: all enabled lanes")
    deadline: float = Field(
        default=0,
        ge=0,
        le=LONGEST_DEADLINE_S,
        description="Seconds to wait before reporting what still runs; repeat to wait longer",
    )
    or_thaw: bool = Field(
        default=False, description="Undo the freeze if the lanes are not quiet by then"
    )


class ThawRequest(RequestBody):
    """The lanes to restore."""

    lanes: Lanes | None = Field(default=None, description="null: all frozen lanes")


class HeldJobOut(BaseModel):
    """A job that still runs in a draining lane."""

    id: UUID
    job_type: str
    attempt: int
    worker: str
    held_s: float


class LaneWatchOut(BaseModel):
    """The jobs that still run in a lane."""

    lane: str
    running: int
    jobs: list[HeldJobOut] = Field(description="Some of them, longest first")


class FreezeOut(BaseModel):
    """The outcome of a freeze."""

    is_quiet: bool = Field(description="No job runs in the lanes, and none starts until thawed")
    is_thawed: bool
    running: int
    waited_s: float
    lanes: list[LaneWatchOut]


class ThawedOut(BaseModel):
    """A lane that is no longer frozen."""

    lane: str
    was_enabled: bool = Field(description="Before it was frozen")
    enabled: bool


class ThawOut(BaseModel):
    """The lanes that a thaw restored."""

    lanes: list[ThawedOut]


class ActiveJobOut(BaseModel):
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
    progress: ProgressOut | None


class RoomUseOut(BaseModel):
    """Used and total capacity of one kind in a worker process."""

    used: int
    total: int


class WorkerOut(BaseModel):
    """A worker process."""

    id: UUID
    name: str
    host: str
    pid: int
    code: str
    transport: Transport = Field(
        description="How it reaches the database: inside an application, with its own login,"
        " or through a server"
    )
    job_types: list[str]
    lanes: list[str] | None = Field(description="null: all")
    concurrency: int
    running: int
    room: dict[str, RoomUseOut] = Field(
        description="Used and total capacity by isolation, when it was last seen;"
        " `slots`: all kinds together, if the worker bounds them"
    )
    memory_bytes: int | None = Field(
        description="Resident set of its process when it was last seen; null: unknown"
    )
    is_live: bool
    state: WorkerState = Field(
        description="dead: no heartbeat for 45 s, and it did not stop regularly"
    )
    is_stopping: bool = Field(
        description="It finishes its jobs and takes no more; false once it has ended"
    )
    is_leader: bool
    drain_requested_at: datetime | None = Field(
        description="When an operator drained it: it finishes its jobs and claims no more"
    )
    drain_requested_by: str | None
    started_at: datetime
    seen_at: datetime


class OldTransactionOut(BaseModel):
    """A transaction of another application that keeps dead rows from being removed."""

    pid: int
    application: str
    user: str
    state: str | None
    age_s: float


class StatusOut(GateOut):
    """The overview for operators."""

    leader: UUID | None = Field(description="The id of the leading worker")
    lanes: list[LaneStatusOut]  # type: ignore[valid-type]
    active: list[ActiveJobOut] = Field(description="At most 1,000, longest first within a lane")
    workers: list[WorkerOut] = Field(description="Live workers")
    silent: list[WorkerOut] = Field(
        description="Workers of the last hour without heartbeats that did not stop regularly"
    )
    oldest_transaction: OldTransactionOut | None = Field(
        description="null: none exists, or the caller may not see all lanes"
    )


class StopRequest(RequestBody):
    """The reason for stopping a job."""

    reason: str | None = Field(default=None, min_length=1, max_length=2000)


class PriorityRequest(RequestBody):
    """The new priority of a waiting job."""

    priority: int = Field(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1], description="Higher first")


class JobSummaryOut(BaseModel):
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
    def of(cls, job: Job) -> JobSummaryOut:
        return cls(**{name: getattr(job, name) for name in cls.model_fields})
