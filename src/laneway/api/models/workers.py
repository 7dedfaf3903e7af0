"""The state of workers, slots and the pause gate, as the API answers it."""

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
    """The pause gate: while it is shut, nothing is claimed."""

    paused: bool
    paused_at: datetime | None
    paused_by: str | None


class FreezeRequest(RequestBody):
    """Which lanes to drain, and how long the answer may wait for them."""

    lanes: Lanes | None = Field(default=None, description="null: all that are enabled")
    deadline: float = Field(
        default=0,
        ge=0,
        le=LONGEST_DEADLINE_S,
        description="Seconds after which it answers what still runs; ask again to wait longer",
    )
    or_thaw: bool = Field(
        default=False, description="Takes it back if the lanes are not quiet then"
    )


class ThawRequest(RequestBody):
    """Which lanes to make what they were."""

    lanes: Lanes | None = Field(default=None, description="null: all that are frozen")


class HeldJobOut(BaseModel):
    """A job that still runs in a lane that drains."""

    id: UUID
    job_type: str
    attempt: int
    worker: str
    held_s: float


class LaneWatchOut(BaseModel):
    """What still runs in a lane."""

    lane: str
    running: int
    jobs: list[HeldJobOut] = Field(description="Some of them, longest first")


class FreezeOut(BaseModel):
    """How far a freeze came."""

    is_quiet: bool = Field(description="Nothing runs in the lanes, and nothing starts until thawed")
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
    """The lanes that a thaw made what they were."""

    lanes: list[ThawedOut]


class ActiveJobOut(BaseModel):
    """Which job holds a slot, since when, by whom."""

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
    """Places of one kind in a worker process."""

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
        description="Places taken and all there are, by isolation, when it was last seen;"
        " `slots`: of all kinds together, where the worker bounds them"
    )
    memory_bytes: int | None = Field(
        description="Resident set of its process when it was last seen; null where it cannot tell"
    )
    is_live: bool
    state: WorkerState = Field(
        description="dead: not heard of for 45 s, and it never said that it stops"
    )
    is_stopping: bool = Field(
        description="It finishes what it runs and takes no more jobs; false once it has ended"
    )
    is_leader: bool
    drain_requested_at: datetime | None = Field(
        description="Since when an operator drains it: it finishes its jobs and claims no more"
    )
    drain_requested_by: str | None
    started_at: datetime
    seen_at: datetime


class OldTransactionOut(BaseModel):
    """A transaction of somebody else that keeps dead rows from being removed."""

    pid: int
    application: str
    user: str
    state: str | None
    age_s: float


class StatusOut(GateOut):
    """Everything an operator looks at first."""

    leader: UUID | None = Field(description="The worker that leads")
    lanes: list[LaneStatusOut]  # type: ignore[valid-type]
    active: list[ActiveJobOut] = Field(description="At most 1,000, longest first within a lane")
    workers: list[WorkerOut] = Field(description="Those that live")
    silent: list[WorkerOut] = Field(
        description="Not heard of lately, and never said that they stop; of the last hour"
    )
    oldest_transaction: OldTransactionOut | None = Field(
        description="null: there is none, or the caller does not see all lanes"
    )


class StopRequest(RequestBody):
    """Why a job is to stop."""

    reason: str | None = Field(default=None, min_length=1, max_length=2000)


class PriorityRequest(RequestBody):
    """A waiting job's other place in its lane."""

    priority: int = Field(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1], description="Higher first")


class JobStandingOut(BaseModel):
    """Where a job stands; `GET /jobs/{id}` has the rest."""

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
    def of(cls, job: Job) -> JobStandingOut:
        return cls(**{name: getattr(job, name) for name in cls.model_fields})
