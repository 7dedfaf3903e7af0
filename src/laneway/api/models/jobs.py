"""Request and response models of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from laneway.api.http.bodies import FLOW_BODY_JOBS
from laneway.api.http.paging import RequestBody
from laneway.api.models.declared import page_model, settings_model
from laneway.client import JobOptions
from laneway.client.spec import FlowableOptions
from laneway.domain.duration import YEAR_S
from laneway.domain.explanation import Explanation
from laneway.domain.filter import JobFilter
from laneway.domain.flow import (
    AFTER_FAILURE_DOC,
    FLOW_NAME_BYTES,
    MAX_PARENTS,
    AfterFailure,
    Flow,
)
from laneway.domain.job import (
    DEFAULT_WORKSPACE,
    LONGEST_DELAY,
    MAX_RETRIES_RANGE,
    MAX_TAGS,
    PRIORITY_RANGE,
    Attempt,
    Job,
)
from laneway.domain.job_id import IdMatches
from laneway.domain.permissions import Reach
from laneway.domain.review import Review
from laneway.domain.states import Status
from laneway.domain.uniqueness import MAX_NAMES
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.operations.models import output_model

# JSON has no type for times, so text is parsed although models are strict.
Moment = Annotated[AwareDatetime, Field(strict=False)]
MAX_JOBS = 1000


class JobRequestFields(RequestBody):
    """The fields of a job to submit, alone or in a flow."""

    job_type: str = Field(min_length=1, max_length=128, examples=["ingestion"])
    payload: Any = Field(
        default=None, description="Arguments by name, checked against the published job type"
    )
    priority: int | None = Field(
        default=None,
        ge=PRIORITY_RANGE[0],
        le=PRIORITY_RANGE[1],
        description="Higher first; null: the job type's default",
    )
    run_at: Moment | None = Field(default=None, description="Earliest start; or use `delay`")
    delay: float | None = Field(default=None, ge=0, le=LONGEST_DELAY, description="Seconds")
    unique_key: str | None = Field(
        default=None, min_length=1, description="Unique among jobs that have not ended"
    )
    unique_for: float | None = Field(
        default=None,
        ge=0,
        le=YEAR_S,
        description="Seconds for which it stays unique, also after its end; 0: not unique",
    )
    unique_by: list[Annotated[str, Field(min_length=1, max_length=128)]] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAMES,
        description="Arguments that form the unique key; null: all, or as the type publishes",
    )
    concurrency_key: str | None = Field(
        default=None, min_length=1, description="Unique among running jobs"
    )
    tags: list[Annotated[str, Field(min_length=1, max_length=128)]] = Field(
        default=[], max_length=MAX_TAGS, fail_fast=True
    )
    max_retries: int | None = Field(default=None, ge=MAX_RETRIES_RANGE[0], le=MAX_RETRIES_RANGE[1])
    after_failure: AfterFailure | None = Field(default=None, description=AFTER_FAILURE_DOC)

    def job_options(self) -> FlowableOptions:
        """The options of `Client.submit` besides job type, payload, workspace and parents."""
        names = JobRequestFields.model_fields.keys() - {"job_type", "payload"}
        return cast("FlowableOptions", {name: getattr(self, name) for name in names})


class JobRequest(JobRequestFields):
    """A job to submit; the caller becomes its `created_by`."""

    workspace: str = Field(default=DEFAULT_WORKSPACE, min_length=1, max_length=128)
    after: list[Annotated[UUID, Field(strict=False)]] = Field(
        default=[],
        max_length=MAX_PARENTS,
        fail_fast=True,
        description="It waits until these jobs have completed; they must be visible to the caller",
    )

    def options(self) -> JobOptions:
        """The options of `Client.submit` besides job type and payload."""
        options: JobOptions = {"workspace": self.workspace, **self.job_options()}  # type: ignore[typeddict-item]
        options["after"] = self.after
        return options


class FlowJobRequest(JobRequestFields):
    """One job of a new flow."""

    name: str | None = Field(
        default=None, min_length=1, max_length=FLOW_NAME_BYTES, description="For `after` of others"
    )
    after: list[Annotated[str, Field(min_length=1, max_length=FLOW_NAME_BYTES)]] = Field(
        default=[],
        max_length=FLOW_BODY_JOBS,
        fail_fast=True,
        description="Names of jobs of this flow, or ids of jobs that are visible to the caller",
    )


class FlowRequest(RequestBody):
    """A flow to submit: all its jobs or none."""

    name: str = Field(min_length=1, max_length=FLOW_NAME_BYTES, examples=["nightly"])
    workspace: str = Field(default=DEFAULT_WORKSPACE, min_length=1, max_length=128)
    tags: list[Annotated[str, Field(min_length=1, max_length=128)]] = Field(
        default=[], max_length=MAX_TAGS, fail_fast=True
    )
    jobs: list[FlowJobRequest] = Field(min_length=1, max_length=FLOW_BODY_JOBS, fail_fast=True)


class NewJobs(RequestBody):
    """Jobs to submit in one transaction."""

    jobs: list[JobRequest] = Field(min_length=1, max_length=MAX_JOBS, fail_fast=True)


class SubmittedOut(BaseModel):
    """The outcome of one job of a batch."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool = Field(description="true: this existing job already had the unique_key")


class SubmittedJobs(BaseModel):
    """The submitted jobs, in the order of the request."""

    items: list[SubmittedOut]


class SubmittedFlowOut(output_model(Flow)):  # type: ignore[misc]
    """The submitted flow, and its jobs in the order of the request."""

    jobs: list[SubmittedOut]


JobOut = output_model(Job)
JobDetailOut = output_model(Review)
ExplanationOut = output_model(Explanation)


class IdMatchesOut(BaseModel):
    """The matches of each prefix, in the order of the request."""

    items: list[output_model(IdMatches)]  # type: ignore[valid-type]


class AttemptPage(page_model(Attempt)):  # type: ignore[misc]
    """Attempts of a job, newest first."""


class JobPage(page_model(Job)):  # type: ignore[misc]
    """Jobs, newest first. A page is shorter if jobs are large or the search takes long."""

    looked_back_to: datetime | None = Field(
        description="The search stopped at a job of this time; `next_cursor` continues from there"
    )


class JobChoice(settings_model("JobChoice", JobFilter, JobFilter)):  # type: ignore[misc]
    """A filter of jobs; all given conditions must hold."""

    def within(self, reach: Reach, private: Reach) -> JobFilter:
        """The filter for jobs in reach; `private`: jobs whose private errors are searched too."""
        given = {name: getattr(self, name) for name in JobChoice.model_fields}
        return JobFilter(within=reach, private=private, **given).check()


class JobQuery(JobChoice):
    """A page of jobs."""

    # All values of a query string are text.
    model_config = ConfigDict(extra="forbid", strict=False)

    limit: int = Field(default=50, ge=1, le=LONGEST_PAGE, description="Maximum number of items")
    cursor: str | None = Field(
        default=None, max_length=512, description="The `next_cursor` of the previous page"
    )
    oldest_first: bool = Field(
        default=False, description="Only with status awaiting_approval: an approver's inbox"
    )


class CancelRequest(RequestBody):
    """The reason for cancelling a job."""

    reason: str | None = Field(default=None, min_length=1, max_length=2000)


class ApprovalRequest(RequestBody):
    """An approver's comment, and the version that is approved."""

    comment: str | None = Field(default=None, min_length=1, max_length=2000)
    seal: str | None = Field(
        default=None, max_length=512, description="Approve only the version with this seal"
    )


class Rejection(RequestBody):
    """The reason why a job must not run."""

    reason: str = Field(min_length=1, max_length=2000)
