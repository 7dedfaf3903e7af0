"""The results of tools, under the contract's names."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from laneway.domain.states import Status


class FailureResult(BaseModel):
    """Why it failed."""

    type: str
    message: str


class ErrorResult(FailureResult):
    """Why it failed, and where."""

    traceback: str | None = Field(default=None, description="Only for those who may see it")


class ProgressResult(BaseModel):
    """The progress of an attempt, in units of its handler."""

    stage: str | None
    done: float | None
    total: float | None
    percent: float | None
    message: str | None


class LogLineResult(BaseModel):
    """One line a handler logged."""

    at: datetime
    level: str
    message: str


class AttemptResult(BaseModel):
    """One claim of a job and how it ended."""

    attempt: int
    worker: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str | None = Field(description="null while it runs")
    error: ErrorResult | None
    log: list[LogLineResult] = Field(default=[], description="The newest lines")
    log_lines: int = Field(default=0, description="How many lines there are")


class JobResult(BaseModel):
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
    duplicate: bool = Field(default=False, description="It existed already, by its unique_key")


class JobPageOut(BaseModel):
    """Jobs, newest first."""

    items: list[JobResult]
    next_cursor: str | None = Field(description="For the next page; null: this is the last")
    looked_back_to: datetime | None = Field(
        description="How far back the search looked; next_cursor continues from there"
    )


class DecisionResult(BaseModel):
    """A decision about a job: approved or rejected, by a person."""

    decision: str
    decided_at: datetime
    decided_by: str | None
    comment: str | None


class JobDetailResult(JobResult):
    """A job with all its details."""

    error: ErrorResult | None
    payload: Any = Field(
        description="Above 32 KiB a note (`left_out`) instead; also in the fields below"
    )
    result: Any
    checkpoint: Any
    analysis: Any = Field(description="Plan and cost estimate for the approver")
    unique_key: str | None
    concurrency_key: str | None
    approved_at: datetime | None
    approved_by: str | None
    expires_at: datetime | None
    claimed_at: datetime | None
    lease_until: datetime | None
    last_progress_at: datetime | None
    cancel_requested_at: datetime | None
    attempts: list[AttemptResult]
    two_person: bool = Field(description="The submitter may not approve it")
    seal: str = Field(description="Approve with it, so that only this version is approved")
    decisions: list[DecisionResult]


class ReasonResult(BaseModel):
    """One reason."""

    code: str
    message: str


class ExplanationResult(BaseModel):
    """Why a job is in its state, most important reason first."""

    id: UUID
    job_type: str
    lane: str
    status: Status
    label: str | None
    reasons: list[ReasonResult]
    starts_in_s: float | None = Field(description="An estimate; null if unknown")
    runs_for_s: float | None = Field(description="How long jobs of its type ran recently")


class StandingOut(BaseModel):
    """The position of a job in its lane."""

    id: UUID
    job_type: str
    lane: str
    status: Status
    priority: int
