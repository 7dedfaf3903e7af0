"""Jobs as JSON: what a submit takes and what every answer shows, under the contract's names."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from laneway.api.http.paging import PageOut, RequestBody
from laneway.domain.approval import LARGEST_AMOUNT
from laneway.domain.filter import LONGEST_AGE, JobFilter
from laneway.domain.job import (
    DEFAULT_WORKSPACE,
    LONGEST_DELAY,
    MAX_RETRIES_RANGE,
    MAX_TAGS,
    PRIORITY_RANGE,
)
from laneway.domain.permissions import Reach
from laneway.domain.states import Status
from laneway.domain.verb_rules import LONGEST_PAGE

# JSON has no times: what comes as text is read, though all else must have its type already.
Moment = Annotated[AwareDatetime, Field(strict=False)]
_Status = Annotated[Status, Field(strict=False)]
MOST_JOBS = 1000


class JobRequest(RequestBody):
    """A job to submit. Who submits it is whoever asks."""

    job_type: str = Field(min_length=1, max_length=128, examples=["ingestion"])
    payload: Any = Field(
        default=None, description="Its arguments, by name; checked as the job type was published"
    )
    priority: int | None = Field(
        default=None,
        ge=PRIORITY_RANGE[0],
        le=PRIORITY_RANGE[1],
        description="Higher first; null: what the job type says",
    )
    run_at: Moment | None = Field(default=None, description="Not before this; or give `delay`")
    delay: float | None = Field(default=None, ge=0, le=LONGEST_DELAY, description="Seconds")
    unique_key: str | None = Field(
        default=None, min_length=1, description="At most one job that has not ended has it"
    )
    concurrency_key: str | None = Field(
        default=None, min_length=1, description="At most one job that runs has it"
    )
    workspace: str = Field(default=DEFAULT_WORKSPACE, min_length=1, max_length=128)
    tags: list[Annotated[str, Field(min_length=1, max_length=128)]] = Field(
        default=[], max_length=MAX_TAGS, fail_fast=True
    )
    max_retries: int | None = Field(default=None, ge=MAX_RETRIES_RANGE[0], le=MAX_RETRIES_RANGE[1])

    def options(self) -> dict[str, Any]:
        """What `Client.submit` takes beside job type and payload."""
        return {
            "priority": self.priority,
            "run_at": self.run_at,
            "delay": self.delay,
            "unique_key": self.unique_key,
            "concurrency_key": self.concurrency_key,
            "workspace": self.workspace,
            "tags": self.tags,
            "max_retries": self.max_retries,
        }


class NewJobs(RequestBody):
    """Jobs to submit together: all of them or none."""

    jobs: list[JobRequest] = Field(min_length=1, max_length=MOST_JOBS, fail_fast=True)


class SubmittedOut(BaseModel):
    """What became of one job of a batch."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool = Field(description="A job that has not ended had its unique_key: it is this")


class SubmittedJobs(BaseModel):
    """In the order given."""

    items: list[SubmittedOut]


class ErrorOut(BaseModel):
    """Why it failed."""

    type: str
    message: str = Field(description="Unless it is public, with jobs:debug or for one's own job")
    traceback: str | None = Field(
        default=None, description="Only with jobs:debug, or for one's own job"
    )


class ProgressOut(BaseModel):
    """How far an attempt has come, in its own units."""

    stage: str | None
    done: float | None
    total: float | None
    percent: float | None
    message: str | None


class LogLineOut(BaseModel):
    """One line a handler logged."""

    at: datetime
    level: str
    message: str


class AttemptOut(BaseModel):
    """One claim of a job and how it ended."""

    attempt: int
    worker: str | None
    claimed_by: UUID | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str | None = Field(description="null while it runs")
    error: ErrorOut | None
    log: list[LogLineOut] | None = Field(
        default=None,
        description="The newest lines; only with jobs:debug, or for one's own job",
    )
    log_lines: int | None = Field(default=None, description="How many lines there are; as `log`")


class JobOut(BaseModel):
    """A job."""

    id: UUID
    job_type: str
    lane: str
    status: Status
    label: str = Field(
        description="The status for people: `queued` for an approved job that needed no approval,"
        " `analysing` for a pending one"
    )
    priority: int
    payload: Any
    result: Any
    error: ErrorOut | None
    progress: ProgressOut | None
    checkpoint: Any
    analysis: Any
    attempt: int
    retries: int
    max_retries: int
    workspace: str
    tags: list[str]
    unique_key: str | None
    concurrency_key: str | None
    created_at: datetime
    created_by: str | None
    approved_at: datetime | None
    approved_by: str | None
    expires_at: datetime | None
    run_at: datetime | None
    claimed_by: UUID | None
    worker: str | None
    claimed_at: datetime | None
    lease_until: datetime | None
    last_progress_at: datetime | None
    cancel_requested_at: datetime | None = Field(
        description="Not for a job that was rejected or not approved in time"
    )
    cancel_reason: str | None
    cancelled_by: str | None = Field(
        description="Who cancelled or rejected it, or asked for that; `laneway` when its approval"
        " expired; null when its handler did"
    )
    started_at: datetime | None = Field(
        description="While it runs, when it was claimed; then when its handler began"
    )
    finished_at: datetime | None
    duplicate: bool | None = Field(
        default=None, description="On the answer to a submit that met this job"
    )


class DecisionOut(BaseModel):
    """What somebody decided about a job."""

    decision: str
    decided_at: datetime
    decided_by: str | None
    comment: str | None
    seal: str | None = Field(description="Of what it was about")


class JobDetailOut(JobOut):
    """A job with its attempts and what was decided about it."""

    attempts: list[AttemptOut] = Field(
        description="The newest 50, in order; `/jobs/{job_id}/attempts` has the others"
    )
    two_person: bool = Field(description="Its submitter may not approve it")
    seal: str = Field(description="Of what is shown here: approve by it, and nothing else is")
    decisions: list[DecisionOut]
    traceparent: str | None = Field(
        description="The span that submitted it, as W3C Trace Context: to find its trace by"
    )


class AttemptPage(PageOut[AttemptOut]):
    """Attempts of a job, newest first."""


class JobPage(PageOut[JobOut]):
    """Jobs, newest first; where they are large or hard to find, fewer: see `next_cursor`."""

    looked_back_to: datetime | None = Field(
        description="The search stopped at a job of then; `next_cursor` goes on from there"
    )


class ReasonOut(BaseModel):
    """One thing that decides."""

    code: str = Field(description="Stable: programs may rely on it")
    message: str


class ExplanationOut(BaseModel):
    """Where a job stands, and why."""

    id: UUID
    job_type: str
    lane: str
    status: Status
    label: str = Field(description="The status for people, as in a job")
    reasons: list[ReasonOut]
    starts_in_s: float | None = Field(description="An estimate; null when nothing tells")
    runs_for_s: float | None = Field(description="As long as jobs of its type ran of late")


class JobChoice(RequestBody):
    """Which jobs; what is given must all hold."""

    status: _Status | None = None
    lane: str | None = Field(default=None, min_length=1, max_length=63)
    job_type: str | None = Field(default=None, min_length=1, max_length=128)
    tag: str | None = Field(default=None, min_length=1, max_length=128)
    worker: str | None = Field(
        default=None, min_length=1, max_length=256, description="Name or id of a worker"
    )
    workspace: str | None = Field(default=None, min_length=1, max_length=128)
    since: Moment | None = Field(default=None, description="Submitted then or later")
    until: Moment | None = Field(default=None, description="Submitted before")
    older_than: float | None = Field(default=None, ge=0, le=LONGEST_AGE, description="Seconds")
    newer_than: float | None = Field(default=None, ge=0, le=LONGEST_AGE, description="Seconds")
    q: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Text in id, job type, payload or error, private messages with jobs:debug",
    )
    max_cost: float | None = Field(
        default=None, ge=0, le=LARGEST_AMOUNT, description="Said by its analysis, in `unit`"
    )
    unit: str | None = Field(default=None, min_length=1, max_length=128)

    def within(self, reach: Reach, private: Reach) -> JobFilter:
        """The filter, of jobs that somebody may reach and whose private errors are for them."""
        given = {name: getattr(self, name) for name in JobChoice.model_fields}
        return JobFilter(within=reach, private=private, **given).check()


class JobQuery(JobChoice):
    """A page of jobs."""

    # The words of a query are all text.
    model_config = ConfigDict(extra="forbid", strict=False)

    limit: int = Field(default=50, ge=1, le=LONGEST_PAGE, description="Longest page")
    cursor: str | None = Field(
        default=None, max_length=512, description="The `next_cursor` of the page before"
    )
    oldest_first: bool = Field(
        default=False, description="With status awaiting_approval only: the inbox of an approver"
    )


class CancelRequest(RequestBody):
    """Why a job is cancelled."""

    reason: str | None = Field(default=None, min_length=1, max_length=2000)


class ApprovalRequest(RequestBody):
    """What an approver says."""

    comment: str | None = Field(default=None, min_length=1, max_length=2000)
    seal: str | None = Field(
        default=None, max_length=512, description="Approve only what was shown with this seal"
    )


class Rejection(RequestBody):
    """Why a job must not run."""

    reason: str = Field(min_length=1, max_length=2000)
