"""The filter of lists and bulk verbs, the same in every interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any, Final, TypedDict
from uuid import UUID

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain.annotations import HIDDEN, Doc
from laneway.domain.approval import LARGEST_AMOUNT
from laneway.domain.claim import parse_job_id
from laneway.domain.duration import CENTURY_S
from laneway.domain.job import NAME_BYTES, TAG_BYTES, check_time
from laneway.domain.lane import LANE_NAME_BYTES, check_job_type, check_lane_name
from laneway.domain.permissions import Reach
from laneway.domain.states import TERMINAL, Status, parse_status
from laneway.domain.suggestion import suggest
from laneway.domain.text import check_text, log_words
from laneway.errors import InvalidInput

QUERY_BYTES: Final = 1000
# The database keeps as much of an error's type.
ERROR_TYPE_CHARS: Final = 200
LONGEST_AGE: Final = CENTURY_S

_WITH_ERROR: Final = (Status.FAILED, Status.CANCELLED)

Word = Annotated[str, MinLen(1), MaxLen(NAME_BYTES)]
Age = Annotated[float | None, Interval(ge=0, le=LONGEST_AGE), Doc("Seconds")]


class JobConditions(TypedDict, total=False):
    """The conditions of a JobFilter as keyword arguments; a status may be its name or label."""

    status: Status | str | None
    lane: str | None
    job_type: str | None
    tag: str | None
    worker: str | None
    workspace: str | None
    since: datetime | None
    until: datetime | None
    older_than: float | None
    newer_than: float | None
    q: str | None
    max_cost: float | None
    unit: str | None
    error_type: str | None
    flow: UUID | str | None
    was_approved: bool | None
    ended_since: datetime | None
    ended_within: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Conditions that jobs must all meet; None is any value.

    `since` and `until` bound the time of the submit, `newer_than` and `older_than` its age in
    seconds by the database's clock. `worker` is the name or id of the worker that runs the job or
    ran it last. `q` is text, in either case, in id, job type, error or payload. `max_cost` takes
    jobs whose analysis estimates at most that in `unit`, and no job without a cost. `error_type`
    takes failed jobs, or with that `status` cancelled ones. `was_approved` takes jobs that a person
    or a policy approved, `False` all others. `ended_since` and `ended_within` bound the time of the
    end, as `since` and `newer_than` that of the submit; a job that has not ended never matches.

    `within` are the jobs that the caller may see; `private` those whose private error messages `q`
    may search (None: all). `delayed` takes only jobs that wait for a later `run_at`, or with the
    status `waiting` those whose handler sleeps. A filter with only these three is empty.
    """

    status: Status | None = None
    lane: Annotated[str | None, MinLen(1), MaxLen(LANE_NAME_BYTES)] = None
    job_type: Word | None = None
    tag: Word | None = None
    worker: Annotated[
        str | None, MinLen(1), MaxLen(2 * NAME_BYTES), Doc("Name or id of a worker")
    ] = None
    workspace: Word | None = None
    since: Annotated[datetime | None, Doc("Submitted at this time or later")] = None
    until: Annotated[datetime | None, Doc("Submitted before this time")] = None
    older_than: Age = None
    newer_than: Age = None
    q: Annotated[
        str | None,
        MinLen(1),
        MaxLen(QUERY_BYTES),
        Doc("Text in id, job type, payload or error; private messages need jobs:debug"),
    ] = None
    max_cost: Annotated[
        float | None,
        Interval(ge=0, le=LARGEST_AMOUNT),
        Doc("Estimated by its analysis, in `unit`"),
    ] = None
    unit: Word | None = None
    error_type: Annotated[
        str | None,
        MinLen(1),
        MaxLen(ERROR_TYPE_CHARS),
        Doc("Type of the error that ended it, such as `ConnectTimeout`"),
    ] = None
    flow: Annotated[UUID | None, Doc("Only jobs of this flow, sub-jobs included")] = None
    was_approved: Annotated[
        bool | None, Doc("true: a person or a policy approved it; quick for any job type")
    ] = None
    ended_since: Annotated[
        datetime | None, Doc("Completed, failed or cancelled at this time or later")
    ] = None
    ended_within: Annotated[
        float | None,
        Interval(ge=0, le=LONGEST_AGE),
        Doc("Completed, failed or cancelled in the last seconds"),
    ] = None
    within: Annotated[Reach | None, HIDDEN] = None
    private: Annotated[Reach | None, HIDDEN] = None
    delayed: Annotated[bool | None, HIDDEN] = None

    @classmethod
    def of(cls, conditions: Mapping[str, Any]) -> JobFilter:
        """A filter from names and values; a status may be its name or label."""
        known = JobConditions.__annotations__
        for name in conditions:
            if name not in known:
                raise InvalidInput(name, f"is not a field of a filter{suggest(name, known)}")
        status = conditions.get("status")
        if isinstance(status, str):
            status = parse_status(status)
        flow = conditions.get("flow")
        given = {"status": status, "flow": flow and parse_job_id(flow)}
        return cls(**{**conditions, **given}).check()

    @property
    def is_empty(self) -> bool:
        """Whether every job matches."""
        return not self.conditions

    @property
    def conditions(self) -> dict[str, object]:
        """The conditions of the caller, by field."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if value is not None and name not in ("within", "private", "delayed")
        }

    def describe(self) -> str:
        """The conditions of the caller for a log: `job_type=send_mail lane=mail`, or `all jobs`."""
        return log_words(self.conditions) or "all jobs"

    def check(self) -> JobFilter:
        """This filter; InvalidInput names the field and the rule that it breaks."""
        if self.status is not None and self.status not in tuple(Status):
            raise InvalidInput("status", f"must be one of {', '.join(Status)}")
        if self.lane is not None:
            check_lane_name(self.lane, "lane")
        if self.job_type is not None:
            check_job_type(self.job_type)
        if self.flow is not None and not isinstance(self.flow, UUID):
            raise InvalidInput("flow", "must be a UUID")
        _check_texts(self)
        for name in ("since", "until", "ended_since"):
            if (moment := getattr(self, name)) is not None:
                check_time(moment, name)
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidInput("until", "must be after since")
        _check_number(self.older_than, "older_than", LONGEST_AGE)
        _check_number(self.newer_than, "newer_than", LONGEST_AGE)
        if (
            self.older_than is not None
            and self.newer_than is not None
            and self.older_than >= self.newer_than
        ):
            raise InvalidInput("older_than", "must be less than newer_than")
        _check_number(self.ended_within, "ended_within", LONGEST_AGE)
        _check_number(self.max_cost, "max_cost", LARGEST_AMOUNT)
        if self.error_type is not None and self.status not in (None, *_WITH_ERROR):
            raise InvalidInput("error_type", f"is for jobs that are {' or '.join(_WITH_ERROR)}")
        if self.was_approved is not None and not isinstance(self.was_approved, bool):
            raise InvalidInput("was_approved", "must be true or false")
        if self.was_approved and self.status in (Status.PENDING, Status.AWAITING_APPROVAL):
            raise InvalidInput("was_approved", f"no job that is {self.status} was approved")
        for name in ("ended_since", "ended_within"):
            if getattr(self, name) is not None and self.status not in (None, *TERMINAL):
                raise InvalidInput(name, f"no job that is {self.status} has ended")
        if self.unit is not None and self.max_cost is None:
            raise InvalidInput("unit", "needs max_cost")
        if self.unit is None and self.max_cost is not None:
            raise InvalidInput("unit", "must be given with max_cost")
        return self


def _check_texts(given: JobFilter) -> None:
    for field, value, size in (
        ("tag", given.tag, TAG_BYTES),
        ("worker", given.worker, 2 * NAME_BYTES),
        ("workspace", given.workspace, NAME_BYTES),
        ("q", given.q, QUERY_BYTES),
        ("unit", given.unit, NAME_BYTES),
        ("error_type", given.error_type, 4 * ERROR_TYPE_CHARS),
    ):
        if value is not None:
            check_text(value, field, max_bytes=size)


def _check_number(value: object, field: str, most: float) -> None:
    if value is None:
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most:  # type: ignore[operator]
        raise InvalidInput(field, f"must be a number from 0 to {most:.0f}")
