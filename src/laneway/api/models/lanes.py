"""Lanes as the API takes and answers them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from laneway.api.http.paging import UNCHANGED, RequestBody
from laneway.domain.lane import JOB_TYPE_BYTES, LANE_NAME_BYTES

LaneName = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]*$", max_length=LANE_NAME_BYTES)
]
JobType = Annotated[str, StringConstraints(min_length=1, max_length=JOB_TYPE_BYTES)]
JobTypes = Annotated[
    list[JobType],
    Field(max_length=10_000, fail_fast=True, description="Taken by no other lane"),
]
Slots = Annotated[
    int | None,
    Field(
        ge=0, le=10_000, description="Running jobs in the whole cluster; 0: none, null: no bound"
    ),
]
PollMs = Annotated[int, Field(ge=100, le=120_000, description="How often a worker looks")]
StaleMinutes = Annotated[
    int, Field(ge=1, le=1440, description="Longest time without progress, for types that say so")
]
LeaseSeconds = Annotated[int, Field(ge=2, le=3600, description="Life of a lease without heartbeat")]
Enabled = Annotated[bool, Field(description="false drains the lane: what runs finishes")]


class NewLane(RequestBody):
    """A lane to create; what is not given takes a new lane's default."""

    name: LaneName
    job_types: JobTypes = Field(default_factory=list)
    max_slots: Slots = 1
    poll_interval_ms: PollMs = 5000
    stale_timeout_minutes: StaleMinutes = 30
    lease_seconds: LeaseSeconds = 30
    enabled: Enabled = True


class LaneChange(RequestBody):
    """What to change of a lane; what is not given stays."""

    job_types: JobTypes = UNCHANGED
    max_slots: Slots = UNCHANGED
    poll_interval_ms: PollMs = UNCHANGED
    stale_timeout_minutes: StaleMinutes = UNCHANGED
    lease_seconds: LeaseSeconds = UNCHANGED
    enabled: Enabled = UNCHANGED


class TakeTypeRequest(RequestBody):
    """Which job type a lane is to take."""

    job_type: JobType


class LaneOut(BaseModel):
    """A lane's policy."""

    name: str
    job_types: list[str]
    max_slots: Slots
    poll_interval_ms: PollMs
    stale_timeout_minutes: StaleMinutes
    lease_seconds: LeaseSeconds
    enabled: Enabled
    updated_at: datetime | None
    updated_by: str | None


class TypeLoadOut(BaseModel):
    """Due jobs of one job type."""

    job_type: str
    depth: int
    depth_is_capped: bool = Field(description="There are more than `depth`")
    oldest_wait_s: float | None


class LaneStatusOut(LaneOut):
    """A lane, its slots in use and what waits in it."""

    frozen: bool
    frozen_by: str | None
    slots_used: int
    utilization: float | None = Field(description="Of the slots there are; null: no bound, no slot")
    depth: int = Field(description="Due jobs")
    depth_is_capped: bool = Field(description="There are more than `depth`")
    oldest_wait_s: float | None
    waiting: list[TypeLoadOut]


class PriorityLoadOut(TypeLoadOut):
    """Due jobs of one job type and priority."""

    priority: int


class LaneDetailOut(LaneStatusOut):
    """A lane, its slots in use, and what waits in it also by priority."""

    by_priority: list[PriorityLoadOut] = Field(description="The highest first; at most 1,000")
