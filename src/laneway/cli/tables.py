"""Jobs, lanes and workers as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from laneway.cli.output import seconds, to_json, visible

if TYPE_CHECKING:
    from laneway.control.lanes import LaneStatus
    from laneway.control.workers import Overview
    from laneway.domain.job import Attempt, Job, Progress
    from laneway.store.lanes import ActiveJob
    from laneway.store.workers import WorkerRow

STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "approved": "blue",
}
_BAR = 12


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return table


def _status(status: str) -> Text:
    return Text(status, STYLES.get(status, ""))


def _ago(at: datetime | None) -> str:
    return seconds((datetime.now(UTC) - at).total_seconds()) if at else "-"


def _progress(progress: Progress | None) -> str:
    if progress is None:
        return ""
    percent = f"{progress.percent:.0f}%" if progress.percent is not None else ""
    counted = f"{progress.done:g}" if progress.done is not None and not percent else ""
    told = (percent, counted, progress.stage, progress.message)
    return visible(" ".join(part for part in told if part))


def jobs(items: Iterable[Job]) -> Table:
    table = _table(
        "ID", "TYPE", "LANE", "STATUS", "PRIO", "TRY", "AGE", "WORKER", "PROGRESS",
        right=("PRIO", "TRY", "AGE"),
    )  # fmt: skip
    for job in items:
        table.add_row(
            str(job.id),
            visible(job.job_type),
            job.lane,
            _status(job.status.value),
            str(job.priority),
            str(job.attempt),
            _ago(job.created_at),
            visible(job.worker or "-"),
            _progress(job.progress),
        )
    return table


def job(shown: Job) -> RenderableType:
    """One job, field by field, then its attempts."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in shown.to_dict().items():
        if name in ("attempts", "error") or value in (None, [], ""):
            continue
        if name == "status":
            grid.add_row(name, _status(str(value)))
        elif name == "progress":
            grid.add_row(name, _progress(shown.progress))
        else:
            text = value if isinstance(value, str) else to_json(value)
            grid.add_row(name, visible(text))
    parts: list[RenderableType] = [grid]
    if shown.error is not None:
        parts.append(Text(f"error  {visible(shown.error.type)}: {visible(shown.error.message)}"))
        parts.extend(_lines(shown.error.traceback))
    for each in shown.attempts:
        parts.extend(_attempt(each))
    return Group(*parts)


def _attempt(each: Attempt) -> Iterator[RenderableType]:
    began = each.started_at or each.claimed_at
    ran = seconds((each.finished_at - began).total_seconds()) if each.finished_at and began else ""
    head = f"attempt {each.attempt}  {each.outcome or 'running'}  {ran}".rstrip()
    yield Text(f"\n{head}  {visible(each.worker or each.claimed_by or '')}", "bold")
    if each.error is not None:
        yield Text(f"  {visible(each.error.type)}: {visible(each.error.message)}")
        yield from _lines(each.error.traceback)
    for entry in each.log:
        at = entry.at.astimezone().strftime("%H:%M:%S")
        yield Text(f"  {at} {visible(entry.level)} {visible(entry.message)}")


def _lines(traceback: str | None) -> Iterator[Text]:
    for text in (traceback or "").splitlines():
        yield Text(f"  {visible(text)}", "dim")


def depth(count: int, is_capped: bool) -> str:
    return f"{count:,}+" if is_capped else f"{count:,}"


def lanes(items: Iterable[LaneStatus]) -> Table:
    table = _table(
        "LANE", "SLOTS", "DEPTH", "OLDEST", "POLL", "STALE", "LEASE", "STATE", "JOB TYPES",
        right=("SLOTS", "DEPTH", "OLDEST", "POLL", "STALE", "LEASE"),
    )  # fmt: skip
    for each in items:
        lane = each.lane
        bound = "∞" if lane.max_slots is None else str(lane.max_slots)
        types = ", ".join(lane.job_types) or ("every other" if lane.name == "default" else "-")
        table.add_row(
            lane.name,
            f"{each.slots_used}/{bound}",
            depth(each.depth, each.is_capped),
            seconds(each.oldest_wait_s),
            seconds(lane.poll_interval_ms / 1000),
            f"{lane.stale_timeout_minutes}m",
            f"{lane.lease_seconds}s",
            Text("enabled", "green") if lane.enabled else Text("drained", "yellow"),
            visible(types),
        )
    return table


def active(items: Iterable[ActiveJob]) -> Table:
    from laneway.control.workers import active_progress

    table = _table(
        "LANE", "JOB", "TYPE", "TRY", "HELD", "WORKER", "", "PROGRESS", right=("TRY", "HELD")
    )
    for each in items:
        progress = active_progress(each)
        percent = progress.percent if progress else None
        asked = "cancel requested " if each.cancel_requested_at else ""
        table.add_row(
            each.lane,
            str(each.id),
            visible(each.job_type),
            str(each.attempt),
            seconds(float(each.held_s)),
            visible(each.worker or each.worker_id),
            ProgressBar(total=100, completed=percent, width=_BAR) if percent is not None else "",
            f"{asked}{_progress(progress)}",
        )
    return table


def workers(items: Iterable[WorkerRow]) -> Table:
    table = _table("WORKER", "HOST", "PID", "RUNNING", "UP", "SEEN", "LANES", "",
                   right=("PID", "RUNNING", "UP", "SEEN"))  # fmt: skip
    for each in items:
        table.add_row(
            visible(each.name),
            visible(each.host),
            str(each.pid),
            f"{each.running}/{each.concurrency}",
            _ago(each.started_at),
            _ago(each.seen_at),
            visible(", ".join(each.lanes)) if each.lanes is not None else "all",
            Text("leader", "magenta") if each.is_leader else "",
        )
    return table


def overview(seen: Overview) -> RenderableType:
    """Lanes, active jobs and live workers, one below the other."""
    parts: list[RenderableType] = []
    if seen.gate.paused:
        by = f" by {visible(seen.gate.paused_by)}" if seen.gate.paused_by else ""
        parts += [Text(f"PAUSED{by}, {_ago(seen.gate.paused_at)} ago: nothing is claimed", "red")]
    parts += [lanes(seen.lanes), Text("")]
    parts += [active(seen.active) if seen.active else Text("no active jobs", "dim"), Text("")]
    parts += [workers(seen.live) if seen.live else Text("no live workers", "yellow")]
    return Group(*parts)
