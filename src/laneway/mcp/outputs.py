"""The results of tools, under the contract's names."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from laneway.domain.explanation import Explanation
from laneway.domain.flow import Flow
from laneway.domain.job import Progress
from laneway.domain.review import Review
from laneway.domain.states import Status
from laneway.domain.wait import WaitsFor
from laneway.operations.models import output_model


class FailureResult(BaseModel):
    """Why it failed."""

    type: str
    message: str


class ProgressResult(output_model(Progress)):  # type: ignore[misc]
    """The progress of an attempt, in units of its handler."""


class WaitsForResult(output_model(WaitsFor)):  # type: ignore[misc]
    """The reason why a job is in `waiting`."""


class ListedJob(BaseModel):
    """A job as lists show it; get_job has the rest."""

    id: UUID
    job_type: str
    lane: str
    status: Status
    label: str = Field(description="The status for people: queued, analysing, running …")
    priority: int
    attempt: int
    retries: int
    max_retries: int
    workspace: str
    tags: list[str]
    created_at: datetime | None
    created_by: str | None
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    progress: ProgressResult | None
    error: FailureResult | None
    cancel_reason: str | None
    cancelled_by: str | None = Field(description="The actor that cancelled or rejected it")
    flow: UUID | None = Field(default=None, description="The flow that it belongs to")
    waits_for: WaitsForResult | None = Field(
        default=None, description="null unless its status is `waiting`"
    )
    duplicate: bool = Field(default=False, description="It existed already, by its unique_key")


class JobPageOut(BaseModel):
    """Jobs, newest first."""

    items: list[ListedJob]
    next_cursor: str | None = Field(description="For the next page; null: this is the last")
    looked_back_to: datetime | None = Field(
        description="How far back the search looked; next_cursor continues from there"
    )


class JobDetailResult(output_model(Review)):  # type: ignore[misc]
    """A job with all its details."""

    duplicate: bool = Field(default=False, description="It existed already, by its unique_key")


class ExplanationResult(output_model(Explanation)):  # type: ignore[misc]
    """Why a job is in its state, most important reason first."""

    label: str | None = Field(description="The status for people; older servers do not send it")


class StandingOut(BaseModel):
    """The position of a job in its lane."""

    id: UUID
    job_type: str
    lane: str
    status: Status
    priority: int


FlowResult = output_model(Flow)


class SubmittedJobOut(BaseModel):
    """One job of a submitted flow."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool = Field(description="It existed already, by its unique_key")


class SubmittedFlowOut(FlowResult):  # type: ignore[misc, valid-type]
    """A submitted flow, with its jobs in the order given."""

    jobs: list[SubmittedJobOut]


class FlowPageOut(BaseModel):
    """One page of flows."""

    items: list[FlowResult]  # type: ignore[valid-type]
    next_cursor: str | None
