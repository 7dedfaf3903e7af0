"""Flows: jobs that are submitted together, with edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from heapq import heappop, heappush
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args
from uuid import UUID

from annotated_types import MaxLen, MinLen

from laneway.domain.annotations import INLINE, Doc
from laneway.domain.states import Status
from laneway.domain.text import check_name, check_text, is_printable
from laneway.errors import InvalidInput, JobFailed

FLOW_NAME_BYTES: Final = 128
# The most jobs and edges of one flow, and the most jobs that one job outside of a flow comes after.
MAX_FLOW_JOBS: Final = 100_000
MAX_FLOW_EDGES: Final = 100_000
MAX_PARENTS: Final = 1_000
# Jobs of a circle that an error names.
_SHOWN: Final = 5

# The effect of a parent that failed or was cancelled.
AfterFailure = Literal["cancel", "run", "hold"]
AFTER_FAILURE: Final[tuple[AfterFailure, ...]] = get_args(AfterFailure)


class _NotGiven(tuple[Any, ...]):
    """No jobs, because the caller gave none: an empty list that it made is accepted."""

    __slots__ = ()


NO_AFTER: Final = _NotGiven()
# The rule of after_failure without after.
NEEDS_AFTER: Final = "needs after: the jobs whose failure it is about"
AFTER_FAILURE_DOC: Final = (
    "If one of `after` fails or is cancelled: `cancel` this job, `run` it anyway, or `hold` it"
    " until the other one is retried and completes"
)


class FlowStatus(StrEnum):
    """The status of a flow, derived from its jobs."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class FlowCounts:
    """The jobs of a flow, and how many of them have ended."""

    jobs: Annotated[int, Doc("All its jobs, sub-jobs included")]
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def unfinished(self) -> int:
        return max(0, self.jobs - self.completed - self.failed - self.cancelled)

    @property
    def status(self) -> FlowStatus:
        """The status of a flow with these jobs."""
        if self.unfinished:
            return FlowStatus.RUNNING
        if self.failed:
            return FlowStatus.FAILED
        return FlowStatus.CANCELLED if self.cancelled else FlowStatus.COMPLETED

    def __str__(self) -> str:
        text = f"{self.completed} of {self.jobs} job{'' if self.jobs == 1 else 's'} completed"
        for name in ("failed", "cancelled"):
            if count := getattr(self, name):
                text += f", {count} {name}"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Jobs that were submitted together."""

    id: UUID
    name: str
    workspace: str
    tags: tuple[str, ...] = ()
    status: Annotated[
        FlowStatus,
        Doc(
            "`running` while a job has not ended; then `failed` if one failed, `cancelled` if one"
            " was cancelled, else `completed`"
        ),
    ]
    created_at: datetime
    created_by: str | None = None
    finished_at: Annotated[datetime | None, Doc("When its last job ended; null before")] = None
    counts: FlowCounts

    @property
    def is_over(self) -> bool:
        return self.status is not FlowStatus.RUNNING


def check_completed(flow: Flow) -> Flow:
    """A flow that has ended; JobFailed unless all its jobs completed."""
    if flow.status is not FlowStatus.COMPLETED:
        verb = "was cancelled" if flow.status is FlowStatus.CANCELLED else "failed"
        raise JobFailed(f"flow {flow.name} {flow.id} {verb}: {flow.counts}")
    return flow


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowJob:
    """One job of a flow, as its graph shows it: never its payload or its result."""

    id: UUID
    name: Annotated[str | None, Doc("Its name within the flow")] = None
    job_type: str
    status: Status
    priority: int = 0
    attempt: int = 0
    after: Annotated[
        tuple[UUID, ...], Doc("The jobs that it comes after; some may be outside of the flow")
    ] = ()
    after_failure: Annotated[AfterFailure | None, Doc("null if it comes after none")] = None
    owner: Annotated[UUID | None, Doc("The job whose handler runs it as a sub-job")] = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error_type: Annotated[str | None, Doc("The type of the error that ended it")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """A flow with one page of its jobs, in the order in which they were submitted."""

    flow: Annotated[Flow, INLINE]
    jobs: Annotated[tuple[FlowJob, ...], Doc("One page of its jobs")] = ()
    next_cursor: Annotated[str | None, Doc("Requests the next page of jobs, if any")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFilter:
    """Conditions that flows must all meet; None is any value."""

    name: Annotated[str | None, MinLen(1), MaxLen(FLOW_NAME_BYTES)] = None
    status: FlowStatus | None = None
    tag: Annotated[str | None, MinLen(1), MaxLen(128)] = None
    workspace: Annotated[str | None, MinLen(1), MaxLen(128)] = None

    def check(self) -> FlowFilter:
        """This filter; InvalidInput names the field and the rule that it breaks."""
        if self.status is not None:
            check_flow_status(self.status)
        for name in ("name", "tag", "workspace"):
            if (value := getattr(self, name)) is not None:
                check_text(value, name, max_bytes=FLOW_NAME_BYTES)
        return self


@dataclass(frozen=True, slots=True)
class ChangedFlow:
    """A flow after a verb, and the number of jobs that the verb changed."""

    flow: Annotated[Flow, INLINE]
    changed: Annotated[int, Doc("Jobs that were cancelled, asked to stop or queued again")]


def check_after_failure(value: object, field: str = "after_failure") -> AfterFailure:
    """The effect of a failed parent; InvalidInput names the words."""
    for word in AFTER_FAILURE:
        if value == word:
            return word
    raise InvalidInput(field, f"must be one of {', '.join(AFTER_FAILURE)}")


def check_flow_status(value: object, field: str = "status") -> FlowStatus:
    """The status; InvalidInput names the words."""
    for status in FlowStatus:
        if value == status:
            return status
    raise InvalidInput(field, f"must be one of {', '.join(FlowStatus)}")


def check_flow_name(value: object, field: str = "name") -> str:
    """The name of a flow, or of a job within it: printable text, no space at either end."""
    name = check_name(value, field, max_bytes=FLOW_NAME_BYTES)
    if not is_printable(name):
        raise InvalidInput(field, "must be printable text without control characters")
    return name


class NamedJob(NamedTuple):
    """A job of a request by its local name, and the jobs that it comes after.

    Each of `after` is a local name or the id of a job that exists already.
    """

    name: str | None
    after: Sequence[str]


class OrderedJob(NamedTuple):
    """A job in the order of storing: its position in the request, and its parents'.

    `outside` are the parents that exist already.
    """

    position: int
    parents: tuple[int, ...]
    outside: tuple[UUID, ...]


def arrange(jobs: Sequence[NamedJob]) -> list[OrderedJob]:
    """Order jobs so that each comes after its parents, and otherwise as given.

    InvalidInput names a name that is used twice or unknown, a circle, and too many edges.
    """
    places = _resolve(jobs)
    check_size(len(places), sum(len(each.parents) + len(each.outside) for each in places))
    children: list[list[int]] = [[] for _ in places]
    missing = [len(each.parents) for each in places]
    for each in places:
        for parent in each.parents:
            children[parent].append(each.position)
    ordered: list[OrderedJob] = []
    free = [each.position for each in places if not missing[each.position]]
    while free:
        position = heappop(free)
        ordered.append(places[position])
        for child in children[position]:
            missing[child] -= 1
            if not missing[child]:
                heappush(free, child)
    if len(ordered) < len(places):
        raise InvalidInput("jobs", _circle(jobs, places, missing))
    return ordered


def check_size(jobs: int, edges: int) -> None:
    """Refuse a flow with no jobs, or with too many jobs or edges."""
    if not jobs:
        raise InvalidInput("jobs", "a flow has at least one job")
    if jobs > MAX_FLOW_JOBS:
        raise InvalidInput("jobs", f"a flow has at most {MAX_FLOW_JOBS} jobs, not {jobs}")
    if edges > MAX_FLOW_EDGES:
        raise InvalidInput(
            "jobs",
            f"a flow has at most {MAX_FLOW_EDGES} edges, not {edges}:"
            " put a job between many parents and many children",
        )


def _resolve(jobs: Sequence[NamedJob]) -> list[OrderedJob]:
    by_name: dict[str, int] = {}
    for i, job in enumerate(jobs):
        if job.name is None:
            continue
        name = check_flow_name(job.name, f"jobs[{i}].name")
        if name in by_name:
            raise InvalidInput(f"jobs[{i}].name", f"jobs[{by_name[name]}] has the name {name!r}")
        by_name[name] = i
    places = []
    for i, job in enumerate(jobs):
        parents: dict[int, None] = {}
        outside: dict[UUID, None] = {}
        for j, given in enumerate(job.after):
            found = by_name.get(given)
            if found is None:
                outside[_job_id(given, f"jobs[{i}].after[{j}]")] = None
            elif found == i:
                raise InvalidInput(f"jobs[{i}].after[{j}]", "a job cannot come after itself")
            else:
                parents[found] = None
        places.append(OrderedJob(i, tuple(parents), tuple(outside)))
    return places


def _job_id(given: str, field: str) -> UUID:
    try:
        return UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(
            field, f"{given!r:.80} is neither the name of a job of this flow nor a job id"
        ) from None


def _circle(jobs: Sequence[NamedJob], places: Sequence[OrderedJob], missing: Sequence[int]) -> str:
    """The text for a circle: jobs that were never free of parents lead into one."""
    at = next(i for i, count in enumerate(missing) if count)
    seen: dict[int, None] = {}
    while at not in seen:
        seen[at] = None
        at = next(parent for parent in places[at].parents if missing[parent])
    path = list(seen)
    circle = [*path[path.index(at) :], at]
    names = [jobs[i].name or f"jobs[{i}]" for i in circle]
    return f"come after each other in a circle: {_path(names)}"


def _path(names: Iterable[str]) -> str:
    shown = list(names)
    if len(shown) > _SHOWN + 1:
        shown = [*shown[:_SHOWN], "…", shown[-1]]
    return " after ".join(shown)
