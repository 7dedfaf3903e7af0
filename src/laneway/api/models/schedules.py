"""Request and response models of schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    BaseModel,
    Field,
    StringConstraints,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from laneway.api.http.paging import UNCHANGED, RequestBody
from laneway.domain.job import DEFAULT_WORKSPACE, MAX_RETRIES_RANGE, PRIORITY_RANGE
from laneway.domain.lane import JobType, LaneName
from laneway.domain.payload import JsonText
from laneway.domain.schedule import CATCH_UP_RANGE, CHECK_NAME_BYTES

Cron = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


def _object_or_text(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Accept an object, or the JSON text of one, as large bodies have it."""
    if isinstance(value, JsonText) and value.startswith("{"):
        return value
    return validate(value)


Payload = Annotated[
    dict[str, Any], WrapValidator(_object_or_text), Field(description="For every job it submits")
]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Missed = Annotated[
    Literal["skip", "coalesce", "catch_up"],
    Field(description="How to handle slots that were missed"),
]
CatchUp = Annotated[int, Field(ge=CATCH_UP_RANGE[0], le=CATCH_UP_RANGE[1])]
CheckName = Annotated[
    str | None,
    Field(min_length=1, max_length=CHECK_NAME_BYTES, description="A check of the workers' code"),
]
Priority = Annotated[
    int | None,
    Field(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1], description="null: the job type's default"),
]
MaxRetries = Annotated[
    int | None,
    Field(ge=MAX_RETRIES_RANGE[0], le=MAX_RETRIES_RANGE[1], description="null: the type's default"),
]
Key = Annotated[str | None, Field(min_length=1, max_length=512)]
Workspace = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Tags = Annotated[
    list[Annotated[str, StringConstraints(max_length=256)]], Field(max_length=1000, fail_fast=True)
]


class NewSchedule(RequestBody):
    """A schedule to create."""

    name: LaneName
    job_type: JobType
    cron: Cron
    payload: Payload = Field(default_factory=dict)
    timezone: Zone = "UTC"
    missed: Missed = "coalesce"
    catch_up: CatchUp = 10
    check_name: CheckName = None
    priority: Priority = None
    max_retries: MaxRetries = None
    concurrency_key: Key = None
    workspace: Workspace = DEFAULT_WORKSPACE
    tags: Tags = Field(default_factory=list)
    enabled: bool = True

    def settings(self) -> dict[str, Any]:
        """All fields but the name."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "name"}


class ScheduleChange(RequestBody):
    """A change of a schedule; fields that are not given stay unchanged."""

    job_type: JobType = UNCHANGED
    cron: Cron = UNCHANGED
    payload: Payload = UNCHANGED
    timezone: Zone = UNCHANGED
    missed: Missed = UNCHANGED
    catch_up: CatchUp = UNCHANGED
    check_name: CheckName = UNCHANGED
    priority: Priority = UNCHANGED
    max_retries: MaxRetries = UNCHANGED
    concurrency_key: Key = UNCHANGED
    workspace: Workspace = UNCHANGED
    tags: Tags = UNCHANGED
    enabled: bool = UNCHANGED

    def settings(self) -> dict[str, Any]:
        """The fields that are given."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class SlotOut(BaseModel):
    """One slot of a schedule and its outcome."""

    slot: datetime
    manual: bool
    outcome: str
    job_id: UUID | None
    note: str | None
    at: datetime


class FireOut(BaseModel):
    """An upcoming slot."""

    at: datetime
    note: str | None = Field(
        description="The effect of a clock change: moved, skipped before, or twice"
    )


class ScheduleOut(BaseModel):
    """A cron rule that submits jobs, with its state and its newest slot."""

    name: str
    job_type: str
    payload: Any
    cron: str
    timezone: str
    words: str = Field(
        description="The cron expression in words, or unchanged if no short description fits"
    )
    missed: Missed
    catch_up: int
    check_name: str | None
    priority: int | None
    max_retries: int | None
    concurrency_key: str | None
    workspace: str
    tags: list[str]
    enabled: bool
    error: str | None = Field(description="The error that stopped it")
    next_at: datetime | None
    next_fires: list[FireOut] = Field(description="The next three slots; empty while it is stopped")
    check_failures: int
    last: SlotOut | None
    created_at: datetime | None
    updated_at: datetime | None
    updated_by: str | None
    as_of: datetime | None = Field(description="The database's clock when this was read")


class RunRequest(RequestBody):
    """Options for running a schedule now."""

    check: bool = Field(default=False, description="Run only if its check passes on a worker")


class RunOut(BaseModel):
    """The outcome of running a schedule now."""

    answer: Literal["submitted", "asked"]
    slot: datetime
    job_id: UUID | None
    job_type: str
    note: str | None
