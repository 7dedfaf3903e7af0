"""Tables of jobs that await approval, and of the decisions about one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from laneway.cli import job_tables, tables
from laneway.cli.output import moment, seconds, to_json, visible
from laneway.domain.approval import excluded_approver

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.domain.job import Job
    from laneway.domain.review import Review

_IDS_SHOWN: Final = 10


def awaiting(items: Iterable[Job], short: Mapping[UUID, str] = {}) -> Table:
    table = tables.columns(
        "ID", "TYPE", "COST", "WARNINGS", "PRIO", "BY", "AGE", "EXPIRES IN",
        right=("COST", "WARNINGS", "PRIO", "AGE", "EXPIRES IN"),
    )  # fmt: skip
    now = datetime.now(UTC)
    for job in items:
        table.add_row(
            short.get(job.id) or str(job.id),
            visible(job.job_type),
            visible(job.cost) if job.cost else "-",
            str(len(_warnings(job)) or "-"),
            str(job.priority),
            visible(job.created_by or "-"),
            seconds((now - job.created_at).total_seconds() if job.created_at else None),
            seconds((job.expires_at - now).total_seconds() if job.expires_at else None),
        )
    return table


def review(seen: Review, log_lines: int) -> RenderableType:
    """Render one job with its analysis, its decisions and its attempts."""
    job = seen.job
    if job.analysis is None and job.expires_at is None and not seen.decisions:
        return job_tables.job(seen, None, log_lines=log_lines, around=_around(seen))
    grid = tables.fields()
    for name, value in _analysis(job):
        grid.add_row(name, visible(value))
    if job.expires_at is not None:
        grid.add_row("seal", seen.seal)
        if seen.two_person:
            grid.add_row("two_person", visible(f"not {excluded_approver(job.created_by)}"))
    parts: list[RenderableType] = [grid]
    for one in seen.decisions:
        at = moment(one.decided_at)
        why = f": {one.comment}" if one.comment else ""
        parts.append(Text(visible(f"{one.decision} {at} by {one.decided_by}{why}")))
    return job_tables.job(seen, Group(*parts), log_lines=log_lines, around=_around(seen))


def _around(seen: Review) -> dict[str, str]:
    """The jobs that it comes after, its owner, and the jobs that come after it."""
    owner = [] if seen.owner is None else [seen.owner]
    rows = {"after": _ids(seen.after), "owner": _ids(owner), "followers": _ids(seen.followers)}
    if seen.after_failure is not None:
        rows["after"] += f" (if one fails: {seen.after_failure})"
    return {name: text for name, text in rows.items() if text}


def _ids(jobs: Sequence[UUID]) -> str:
    more = len(jobs) - _IDS_SHOWN
    return ", ".join(map(str, jobs[:_IDS_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _analysis(job: Job) -> Iterator[tuple[str, str]]:
    analysis = job.analysis
    if isinstance(analysis, dict) and analysis.get("plan") is not None:
        plan = analysis["plan"]
        yield "plan", plan if isinstance(plan, str) else to_json(plan)
    elif analysis is not None and not isinstance(analysis, dict):
        yield "analysis", to_json(analysis)
    if job.cost:
        yield "cost", str(job.cost)
    for warning in _warnings(job):
        yield "warning", warning


def _warnings(job: Job) -> list[str]:
    warnings = job.analysis.get("warnings") if isinstance(job.analysis, dict) else None
    return [str(one) for one in warnings] if isinstance(warnings, list) else []
