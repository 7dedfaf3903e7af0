"""Request and response models of workers, slots and the pause gate."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from laneway.api.http.paging import RequestBody
from laneway.domain.freeze import Freeze
from laneway.domain.job import PRIORITY_RANGE
from laneway.domain.lane import LaneName
from laneway.domain.overview import (
    ActiveJob,
    Gate,
    JobSummary,
    LaneStatus,
    OldSnapshot,
    WorkerRow,
)
from laneway.operations.models import output_model

LONGEST_DEADLINE_S = 10.0

ActiveJobOut = output_model(ActiveJob)
FreezeOut = output_model(Freeze)
GateOut = output_model(Gate)
JobSummaryOut = output_model(JobSummary)
LaneStatusOut = output_model(LaneStatus)
OldTransactionOut = output_model(OldSnapshot)
WorkerOut = output_model(WorkerRow)
Lanes = Annotated[list[LaneName], Field(max_length=1000, fail_fast=True)]


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


class StatusOut(GateOut):  # type: ignore[misc,valid-type]
    """The overview for operators."""

    leader: UUID | None = Field(description="The id of the leading worker")
    lanes: list[LaneStatusOut]  # type: ignore[valid-type]
    active: list[ActiveJobOut] = Field(  # type: ignore[valid-type]
        description="At most 1,000, longest first within a lane"
    )
    workers: list[WorkerOut] = Field(description="Live workers")  # type: ignore[valid-type]
    silent: list[WorkerOut] = Field(  # type: ignore[valid-type]
        description="Workers of the last hour without heartbeats that did not stop regularly"
    )
    oldest_transaction: OldTransactionOut | None = Field(  # type: ignore[valid-type]
        description="null: none exists, or the caller may not see all lanes"
    )


class StopRequest(RequestBody):
    """The reason for stopping a job."""

    reason: str | None = Field(default=None, min_length=1, max_length=2000)


class PriorityRequest(RequestBody):
    """The new priority of a waiting job."""

    priority: int = Field(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1], description="Higher first")
