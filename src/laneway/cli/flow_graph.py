"""The graph of a flow as text, or as a Mermaid diagram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from laneway.cli.flow_details import FlowDetails
from laneway.cli.flow_groups import MOST_GROUPS

if TYPE_CHECKING:
    from laneway.cli.flow_groups import Grouping, JobGroup
    from laneway.domain.flow import FlowJob

# Parents that one line names.
MOST_PARENTS: Final = 3
_NONE: Final = FlowDetails()
_COLORS: Final = {
    "completed": "#c8e6c9",
    "failed": "#ffcdd2",
    "cancelled": "#e0e0e0",
    "running": "#bbdefb",
}
# A label may hold neither tags nor entities, and no directive (`%%{…}%%`) or Markdown (`` ` ``).
_ENTITIES: Final = str.maketrans(
    {
        "#": "#35;",
        "&": "#amp;",
        "<": "#lt;",
        ">": "#gt;",
        '"': "#quot;",
        "%": "#37;",
        "`": "#96;",
    }
)


def drawn(grouping: Grouping, details: FlowDetails = _NONE) -> Iterator[str]:
    """The lines of the graph: each group below one of its parents, the others named."""
    groups = grouping.groups
    for branch, each in _placed(groups):
        states = each.states(details.label)
        job_id = error = ""
        if (only := each.only) is not None:
            job_id = f" {details.ids[only.id]}" if only.id in details.ids else ""
            error = f"; {details.errors[only.id]}" if only.id in details.errors else ""
        yield f"{branch}{each.label}{job_id}: {states}{_after(each, groups)}{error}"
    if grouping.caution:
        yield f"({grouping.caution})"
    if len(groups) > MOST_GROUPS:
        yield f"… {len(groups) - MOST_GROUPS} more; --json has all"


def shown_alone(grouping: Grouping) -> list[FlowJob]:
    """The jobs with a line of the graph for each."""
    placed = _placed(grouping.groups)
    return [each.only for _, each in placed if each.only is not None]


def _placed(groups: list[JobGroup]) -> Iterator[tuple[str, JobGroup]]:
    """The first groups from top to bottom, with the branches before each."""
    below: dict[int | None, list[JobGroup]] = {}
    for each in groups:
        below.setdefault(max(each.parents, default=None), []).append(each)
    # A stack, because a chain may be longer than Python's recursion.
    waiting = [(each, "", each is below[None][-1]) for each in reversed(below.get(None, []))]
    shown = 0
    while waiting and shown < MOST_GROUPS:
        each, indent, is_last = waiting.pop()
        shown += 1
        branch = "" if not each.parents else "└─ " if is_last else "├─ "
        yield indent + branch, each
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


def mermaid(grouping: Grouping, details: FlowDetails = _NONE) -> Iterator[str]:
    """The lines of a Mermaid flowchart."""
    groups = grouping.groups[:MOST_GROUPS]
    yield "flowchart TD"
    for each in groups:
        label = f"{_escaped(each.label)}<br/>{_escaped(each.states(details.label))}"
        status = each.status
        yield f'    j{each.number}["{label}"]' + (f":::{status}" if status in _COLORS else "")
    for each in groups:
        for parent in each.parents:
            yield f"    j{parent} --> j{each.number}"
    if grouping.caution:
        yield f'    caution["{grouping.caution}"]'
    if (left := len(grouping.groups) - len(groups)) > 0:
        yield f'    more["… {left} more; --json has all"]'
    for status, color in _COLORS.items():
        yield f"    classDef {status} fill:{color},color:#000"


def _escaped(text: str) -> str:
    """The text of a label, by Mermaid's entity codes."""
    return text.translate(_ENTITIES)
