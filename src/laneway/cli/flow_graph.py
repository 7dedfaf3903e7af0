"""The graph of a flow as text, or as a Mermaid diagram.

Jobs of one type that come after the same jobs are drawn as one group: a fan-out of 200 jobs is one
line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from laneway.cli.output import visible

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.domain.flow import FlowJob

# Groups that one drawing shows, and parents that one line names.
MOST_GROUPS: Final = 200
MOST_PARENTS: Final = 3
_COLORS: Final = {
    "completed": "#c8e6c9",
    "failed": "#ffcdd2",
    "cancelled": "#e0e0e0",
    "running": "#bbdefb",
}


@dataclass(slots=True)
class JobGroup:
    """Jobs of one type that come after the same groups."""

    number: int
    job_type: str
    parents: tuple[int, ...]
    # Comes after jobs of other flows, which are not drawn.
    is_outside: bool
    jobs: list[FlowJob] = field(default_factory=list)
    # Jobs that wait until one before them, which failed or was cancelled, is retried.
    held: set[UUID] = field(default_factory=set)

    @property
    def label(self) -> str:
        """`page ×200`, or the name of a single job."""
        if len(self.jobs) > 1:
            return f"{visible(self.job_type)} ×{len(self.jobs)}"
        name = self.jobs[0].name
        named = "" if name is None or name == self.job_type else f" ({visible(name)})"
        return visible(self.job_type) + named

    @property
    def states(self) -> str:
        """`completed`, or `150 completed, 50 running`; `waiting (held)` for a held job."""
        counts = Counter(
            job.status.value + (" (held)" if job.id in self.held else "") for job in self.jobs
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


def grouped(jobs: Iterable[FlowJob]) -> list[JobGroup]:
    """The groups of a flow, each after its parents; jobs come in the order of their submit."""
    by_job: dict[UUID, int] = {}
    groups: dict[tuple[str, tuple[int, ...], bool], JobGroup] = {}
    failed: set[UUID] = set()
    for job in jobs:
        above = [*job.after] if job.owner is None else [*job.after, job.owner]
        parents = tuple(sorted({by_job[each] for each in above if each in by_job}))
        is_outside = any(each not in by_job for each in above)
        key = (job.job_type, parents, is_outside)
        if key not in groups:
            groups[key] = JobGroup(len(groups), job.job_type, parents, is_outside)
        groups[key].jobs.append(job)
        if job.status.value in ("failed", "cancelled"):
            failed.add(job.id)
        is_waiting = job.status.value == "waiting"
        if is_waiting and job.after_failure == "hold" and not failed.isdisjoint(job.after):
            groups[key].held.add(job.id)
        by_job[job.id] = groups[key].number
    return list(groups.values())


def drawn(jobs: Iterable[FlowJob]) -> Iterator[str]:
    """The lines of the graph: each group below one of its parents, the others named."""
    groups = grouped(jobs)
    below: dict[int | None, list[JobGroup]] = {}
    for each in groups:
        below.setdefault(max(each.parents, default=None), []).append(each)
    # A stack, because a chain may be longer than Python's recursion.
    waiting = [(each, "", each is below[None][-1]) for each in reversed(below.get(None, []))]
    shown = 0
    while waiting:
        each, indent, is_last = waiting.pop()
        if shown == MOST_GROUPS:
            yield f"… {len(groups) - shown} more; --json has all"
            return
        shown += 1
        branch = "" if not each.parents else "└─ " if is_last else "├─ "
        yield f"{indent}{branch}{each.label}: {each.states}{_after(each, groups)}"
        inner = indent if not each.parents else indent + ("   " if is_last else "│  ")
        children = below.get(each.number, [])
        # A chain stays at its column.
        if len(children) == 1 and len(inner) > 60:
            inner = indent
        waiting += [(child, inner, child is children[-1]) for child in reversed(children)]


def _after(group: JobGroup, groups: list[JobGroup]) -> str:
    """The parents that the place of the line does not show."""
    others = [groups[each].label for each in group.parents[:-1]]
    if group.is_outside:
        others.append("jobs outside of this flow")
    if not others:
        return ""
    rest = f" and {len(others) - MOST_PARENTS} more" if len(others) > MOST_PARENTS else ""
    return f", also after {', '.join(others[:MOST_PARENTS])}{rest}"


def mermaid(jobs: Iterable[FlowJob]) -> Iterator[str]:
    """The lines of a Mermaid flowchart."""
    groups = grouped(jobs)[:MOST_GROUPS]
    yield "flowchart TD"
    for each in groups:
        label = f"{each.label}<br/>{each.states}".replace('"', "#quot;")
        status = each.status
        yield f'    j{each.number}["{label}"]' + (f":::{status}" if status in _COLORS else "")
    for each in groups:
        for parent in each.parents:
            yield f"    j{parent} --> j{each.number}"
    for status, color in _COLORS.items():
        yield f"    classDef {status} fill:{color},color:#000"
