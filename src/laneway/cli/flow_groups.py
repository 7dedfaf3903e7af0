"""Groups of alike jobs in the graph of a flow.

Jobs are alike if they have one type, come after the same groups, and the same groups come after
them. A job with a name has a separate line. So a fan-out of 200 jobs is one line, and each drawn
edge exists for all jobs of both groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from laneway.cli.output import visible

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.domain.flow import FlowJob

# Groups that one drawing shows.
MOST_GROUPS: Final = 200
# Alike jobs whose names are kept in a flow with too many names.
FEW_NAMES: Final = 10
# Each round costs as much as all jobs and edges; few flows need more than three.
_MOST_STEPS: Final = 500_000
_LEAST_ROUNDS: Final = 10


class Detail(Enum):
    """The detail of a graph: groups leave out more if they would be too many to read."""

    ALL = 0
    # Names of many alike jobs.
    NO_NAMES = 1
    # Jobs of one type that come after the same ones share a line, whatever comes after them.
    MERGED = 2


@dataclass(slots=True)
class JobGroup:
    """Alike jobs."""

    number: int
    job_type: str
    parents: tuple[int, ...]
    # Comes after jobs of other flows, which are not drawn.
    is_outside: bool
    jobs: list[FlowJob] = field(default_factory=list)
    # Jobs that wait until one before them, which failed or was cancelled, is retried.
    held: set[UUID] = field(default_factory=set)

    @property
    def only(self) -> FlowJob | None:
        """The job, if the group has no other."""
        return self.jobs[0] if len(self.jobs) == 1 else None

    @property
    def label(self) -> str:
        """`page ×200`, or `book (hotel)` if all its jobs have one name."""
        text = visible(self.job_type)
        names = {_own_name(job) for job in self.jobs}
        if len(names) == 1 and (name := next(iter(names))) is not None:
            text += f" ({visible(name)})"
        if len(self.jobs) > 1:
            text += f" ×{len(self.jobs)}"
        return text

    def states(self, label: Callable[[FlowJob], str]) -> str:
        """`completed`, or `150 completed, 50 running`; `waiting (held)` for a held job."""
        counts = Counter(
            label(job) + (" (held)" if job.id in self.held else "") for job in self.jobs
        )
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{count} {status}" for status, count in counts.most_common())

    @property
    def status(self) -> str:
        """The status that a diagram shows for all: that of the job that is worst off."""
        found = {job.status.value for job in self.jobs}
        for status in ("failed", "cancelled", "running", "completed"):
            if status in found and (status != "completed" or len(found) == 1):
                return status
        return "waiting"


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a flow, each after its parents."""

    groups: list[JobGroup]
    detail: Detail

    @property
    def caution(self) -> str | None:
        """Text that names what the drawing leaves out; None: it shows all."""
        if self.detail is Detail.ALL or all(each.only for each in self.groups):
            return None
        if self.detail is Detail.NO_NAMES:
            return "too many names for one graph: alike jobs share a line; --json has all names"
        return (
            "too many unlike jobs for one graph: a line has all jobs of one type after the same"
            " ones, so what comes after it may come after only some of them; --json has all"
        )


class _Edges:
    """The parents and children of each job, as places in the list of jobs."""

    def __init__(self, jobs: Sequence[FlowJob]) -> None:
        place = {job.id: at for at, job in enumerate(jobs)}
        self.parents: list[list[int]] = []
        self.children: list[list[int]] = [[] for _ in jobs]
        self.is_outside: list[bool] = []
        for at, job in enumerate(jobs):
            above = {*job.after} if job.owner is None else {*job.after, job.owner}
            # Only earlier jobs: a parent is submitted before its children.
            found = sorted(place[each] for each in above if place.get(each, at) < at)
            self.parents.append(found)
            self.is_outside.append(len(found) < len(above))
            for parent in found:
                self.children[parent].append(at)


def grouped(jobs: Iterable[FlowJob]) -> Grouping:
    """The groups of a flow; jobs come in the order of their submit."""
    jobs = list(jobs)
    edges = _Edges(jobs)
    names = [_own_name(job) for job in jobs]
    alike = _refined(jobs, edges, names)
    if alike is not None:
        return Grouping(_groups(jobs, edges, alike), Detail.ALL)
    without = [None] * len(jobs)
    alike = None if names == without else _refined(jobs, edges, without)
    if alike is not None:
        sizes = Counter(alike)
        few = [
            name if sizes[number] <= FEW_NAMES else None
            for name, number in zip(names, alike, strict=True)
        ]
        alike = _refined(jobs, edges, few) or alike
        return Grouping(_groups(jobs, edges, alike), Detail.NO_NAMES)
    return Grouping(_groups(jobs, edges, _merged(jobs, edges)), Detail.MERGED)


def _refined(
    jobs: Sequence[FlowJob], edges: _Edges, names: Sequence[str | None]
) -> list[int] | None:
    """The number of each job's group; None: there are too many groups.

    Splits groups by their parents, then by their children, until no group has a job that differs.
    """
    seeds = zip(jobs, names, edges.is_outside, strict=True)
    alike = _numbered((job.job_type, name, outside) for job, name, outside in seeds)
    count = _count(alike)
    size = len(jobs) + sum(map(len, edges.parents))
    for _ in range(max(_LEAST_ROUNDS, _MOST_STEPS // max(size, 1))):
        if count > MOST_GROUPS:
            return None
        # Within one pass, a job sees the new numbers of all its parents, or children.
        for near, order in (
            (edges.parents, range(len(jobs))),
            (edges.children, range(len(jobs) - 1, -1, -1)),
        ):
            alike = _split(alike, near, order)
        if (now := _count(alike)) == count:
            return alike
        count = now
    return None


def _split(alike: list[int], near: Sequence[list[int]], order: Iterable[int]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    new = [0] * len(alike)
    for at in order:
        key = (alike[at], frozenset(new[each] for each in near[at]))
        new[at] = numbers.setdefault(key, len(numbers))
    return new


def _merged(jobs: Sequence[FlowJob], edges: _Edges) -> list[int]:
    types = _numbered(
        (job.job_type, outside) for job, outside in zip(jobs, edges.is_outside, strict=True)
    )
    return _split(types, edges.parents, range(len(jobs)))


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _count(alike: list[int]) -> int:
    return len(set(alike))


def _groups(jobs: Sequence[FlowJob], edges: _Edges, alike: Sequence[int]) -> list[JobGroup]:
    """The groups by these numbers, in the order of their first jobs."""
    numbers = _numbered(alike)
    groups: list[JobGroup] = []
    ended_badly: set[UUID] = set()
    for at, job in enumerate(jobs):
        if numbers[at] == len(groups):
            parents = tuple(sorted({numbers[each] for each in edges.parents[at]}))
            groups.append(JobGroup(numbers[at], job.job_type, parents, edges.is_outside[at]))
        group = groups[numbers[at]]
        group.jobs.append(job)
        if job.status.value in ("failed", "cancelled"):
            ended_badly.add(job.id)
        is_waiting = job.status.value == "waiting"
        if is_waiting and job.after_failure == "hold" and not ended_badly.isdisjoint(job.after):
            group.held.add(job.id)
    return groups


def _own_name(job: FlowJob) -> str | None:
    return None if job.name == job.job_type else job.name
