"""Tables of lanes, workers, limits, flows and changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from laneway.cli.output import moment, seconds, to_json, visible
from laneway.domain.change import differences
from laneway.domain.limit import LimitSettings

if TYPE_CHECKING:
    from laneway.domain.audit import AuditEntry
    from laneway.domain.change import Change
    from laneway.domain.flow import Flow
    from laneway.domain.freeze import LaneWatch
    from laneway.domain.job import Progress
    from laneway.domain.lane_setup import SetupChange
    from laneway.domain.limit import Limit, LimitStatus
    from laneway.domain.overview import ActiveJob, Gate, LaneStatus, Overview, WorkerRow

STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "approved": "blue",
}
# Lanes that list no job types.
_TYPES_OF = {"default": "every other type", "analysis": "analyses of all types"}
_BAR = 12
_LONGEST_VALUE = 80
# Settings for which null is written as `unbounded`.
_BOUNDS = ("max_slots", "max_concurrent")
# Narrower terminals show the age of audit entries instead of the time.
_WIDE_AUDIT = 140


def columns(*names: str, right: Sequence[str] = (), folding: Sequence[str] = ()) -> Table:
    """An empty table; columns that are `folding` become narrower than their text before others."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        justify: Literal["right", "left"] = "right" if name in right else "left"
        if name in folding:
            table.add_column(name, justify=justify, overflow="fold", min_width=len(name))
        else:
            table.add_column(name, justify=justify, no_wrap=True)
    return table


def ago(at: datetime | None) -> str:
    """The time since then."""
    return seconds((datetime.now(UTC) - at).total_seconds()) if at else "-"


def progress_text(progress: Progress | None) -> str:
    """Percent or count, stage and message on one line."""
    if progress is None:
        return ""
    percent = f"{progress.percent:.0f}%" if progress.percent is not None else ""
    counted = f"{progress.done:g}" if progress.done is not None and not percent else ""
    values = (percent, counted, progress.stage, progress.message)
    return visible(" ".join(part for part in values if part))


def cut(text: str) -> Text:
    """One line of text, which a narrow column cuts with an ellipsis."""
    return Text(visible(text), no_wrap=True, overflow="ellipsis")


def fields() -> Table:
    """A grid of names and values."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def depth(count: int, is_capped: bool) -> str:
    return f"{count:,}+" if is_capped else f"{count:,}"


def lanes(items: Iterable[LaneStatus]) -> Table:
    table = columns(
        "LANE", "SLOTS", "DEPTH", "OLDEST", "POLL", "STALE", "LEASE", "STATE", "JOB TYPES",
        right=("SLOTS", "DEPTH", "OLDEST", "POLL", "STALE", "LEASE"),
    )  # fmt: skip
    for each in items:
        lane = each.lane
        types = ", ".join(lane.job_types) or _TYPES_OF.get(lane.name, "-")
        table.add_row(
            lane.name,
            slots(each),
            depth(each.depth, each.depth_is_capped),
            seconds(each.oldest_wait_s),
            seconds(lane.poll_interval_ms / 1000),
            f"{lane.stale_timeout_minutes}m",
            f"{lane.lease_seconds}s",
            lane_state(each),
            visible(types),
        )
    return table


def slots(each: LaneStatus) -> str:
    """Slots in use, of those there are."""
    bound = "∞" if each.lane.max_slots is None else str(each.lane.max_slots)
    return f"{each.slots_used}/{bound}"


def lane_state(each: LaneStatus) -> Text:
    """Whether the lane is enabled, drained, or who froze it."""
    if each.frozen_by is not None:
        return Text(f"frozen by {visible(each.frozen_by)}", "cyan")
    return Text("enabled", "green") if each.lane.enabled else Text("drained", "yellow")


def active(items: Iterable[ActiveJob]) -> Table:
    table = columns(
        "LANE", "JOB", "TYPE", "TRY", "HELD", "WORKER", "", "PROGRESS", right=("TRY", "HELD")
    )
    for each in items:
        progress = each.progress
        percent = progress.percent if progress else None
        cancelling = "cancel requested " if each.cancel_requested_at else ""
        table.add_row(
            each.lane,
            str(each.id),
            visible(each.job_type),
            str(each.tries or "-"),
            seconds(float(each.held_s)),
            visible(each.worker or each.claimed_by),
            ProgressBar(total=100, completed=percent, width=_BAR) if percent is not None else "",
            f"{cancelling}{progress_text(progress)}",
        )
    return table


def workers(items: Iterable[WorkerRow]) -> Table:
    table = columns("WORKER", "HOST", "PID", "RUNNING", "BUSY", "MEMORY", "UP", "SEEN", "LANES",
                    "VIA", "", right=("PID", "RUNNING", "MEMORY", "UP", "SEEN"))  # fmt: skip
    for each in items:
        table.add_row(
            visible(each.name),
            visible(each.host),
            str(each.pid),
            str(each.running),
            _busy(each),
            _megabytes(each.memory_bytes),
            ago(each.started_at),
            ago(each.seen_at),
            visible(", ".join(each.lanes)) if each.lanes is not None else "all",
            each.transport.replace("_", " "),
            _worker_state(each),
        )
    return table


def _busy(each: WorkerRow) -> str:
    """Used and total capacity by kind."""
    if each.state == "dead" or not each.runs_jobs:
        return "-"
    uses = [f"{kind} {use.used}/{use.total}" for kind, use in each.room.items()]
    return "\n".join(uses) or f"{each.running}/{each.concurrency}"


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1_000_000:,.0f} MB"


def _worker_state(each: WorkerRow) -> Text:
    states = []
    if each.is_stopping:
        states.append(Text("stopping", "yellow"))
    if each.state == "dead":
        states.append(Text(f"dead, last seen {ago(each.seen_at)} ago", "red"))
    if each.drain_requested_at is not None:
        states.append(Text(f"drained by {visible(each.drain_requested_by or '-')}", "yellow"))
    if each.is_leader:
        states.append(Text("leader", "magenta"))
    return Text(", ").join(states)


def paused(gate: Gate) -> Text:
    """The line about a closed pause gate."""
    by = f" by {visible(gate.paused_by)}" if gate.paused_by else ""
    return Text(f"PAUSED{by}, {ago(gate.paused_at)} ago: nothing is claimed", "red")


def overview(seen: Overview) -> RenderableType:
    """Render lanes, active jobs and live workers."""
    parts: list[RenderableType] = []
    if seen.gate.paused:
        parts += [paused(seen.gate)]
    parts += [lanes(seen.lanes), Text("")]
    parts += [active(seen.active) if seen.active else Text("no active jobs", "dim"), Text("")]
    if not any(worker.runs_jobs for worker in seen.live):
        parts += [Text("no live workers", "yellow")]
    if shown := [*seen.live, *seen.dead]:
        parts += [workers(shown)]
    return Group(*parts)


def limits(items: Iterable[LimitStatus]) -> Table:
    table = columns(
        "LIMIT", "RUNNING", "AT ONCE", "RATE", "COUNTED PER", "WAITING", "HELD BY",
        right=("RUNNING", "AT ONCE", "WAITING"),
    )  # fmt: skip
    for each in items:
        limit = each.limit
        period = limit.rate_period_s
        table.add_row(
            limit.name,
            str(each.running),
            "∞" if limit.max_concurrent is None else str(limit.max_concurrent),
            f"{limit.rate_count:,} per {seconds(period)}" if period is not None else "-",
            limit.scope,
            depth(each.waiting, each.waiting_is_capped),
            visible(", ".join(each.holders) or "-"),
        )
    return table


def flows(items: Iterable[Flow]) -> Table:
    """Render a list of flows."""
    right = ("JOBS", "DONE", "FAILED", "CANCELLED", "AGE")
    table = columns("ID", "NAME", "STATUS", *right, "TAGS", right=right, folding=("NAME", "TAGS"))
    for flow in items:
        counts = flow.counts
        table.add_row(
            str(flow.id),
            cut(flow.name),
            Text(flow.status.value, STYLES.get(flow.status.value, "")),
            str(counts.jobs),
            str(counts.completed),
            str(counts.failed),
            str(counts.cancelled),
            ago(flow.created_at),
            cut(", ".join(flow.tags) or "-"),
        )
    return table


def changes(items: Iterable[Change]) -> Table:
    table = columns("ID", "AT", "BY", "WHAT", "CHANGE", right=("ID",))
    for each in items:
        table.add_row(
            str(each.id),
            moment(each.at),
            visible(each.by),
            "pause gate" if each.kind == "gate" else visible(each.name),
            difference(each),
        )
    return table


def difference(change: Change) -> str:
    """Describe a change on one line."""
    return visible(_describe(change.differences) or change.verb)


def limit_change(before: Limit | None, after: Limit) -> str:
    """Describe on one line what changed in a limit."""
    old, new = (
        {name: getattr(limit, name, None) for name in LimitSettings.__annotations__}
        for limit in (before, after)
    )
    return visible(_describe(differences(old, new)) or "unchanged")


def setup_change(change: SetupChange) -> str:
    """Describe on one line what a set of lanes changes in a lane."""
    settings = _describe(change.differences)
    match change.action:
        case "created":
            return visible(f"created: {_settings(change.after or {})}")
        case "deleted":
            return "deleted"
        case "drained":
            return visible(
                f"drained instead of deleted, because {change.reason}"
                + (f": {settings}" if settings else "")
            )
        case _:
            return visible(settings)


def _settings(state: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} {_setting(name, value)}" for name, value in state.items() if name != "name"
    )


def _describe(differing: Mapping[str, tuple[object, object]]) -> str:
    return ", ".join(
        f"{name} {_setting(name, old)} → {_setting(name, new)}"
        for name, (old, new) in differing.items()
    )


def audit_entries(items: Sequence[AuditEntry], *, width: int) -> Table:
    is_narrow = width < _WIDE_AUDIT
    names = ["ID", "AGE" if is_narrow else "AT", "ACTOR", "DOOR", "ACTION", "NAME", "CHANGE"]
    has_claims = any(each.claimed for each in items)
    if has_claims:
        names.append("CLAIMED")
    table = columns(*names, right=("ID",), folding=("ACTOR", "NAME", "CHANGE", "CLAIMED"))
    for each in items:
        row = [
            str(each.id),
            ago(each.at) if is_narrow else moment(each.at),
            visible(each.actor),
            each.door,
            visible(each.action) + ("" if each.outcome == "done" else f" ({each.outcome})"),
            visible(each.name or "-"),
            _effect(each),
        ]
        table.add_row(*row, *([", ".join(each.claimed) or "-"] if has_claims else []))
    return table


def _effect(entry: AuditEntry) -> str:
    """Describe the effect of an audit entry on one line."""
    state = entry.after if entry.before is None else entry.before
    if entry.before is not None and entry.after is not None:
        changed = differences(entry.before, entry.after)
        return visible(_describe(changed)) if changed else "-"
    return "-" if state is None else visible(_short(state))


def _setting(name: str, value: object) -> str:
    """A value as the option of this name takes it."""
    return "unbounded" if value is None and name in _BOUNDS else _short(value)


def _short(value: object) -> str:
    text = to_json(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def still_running(lanes: Iterable[LaneWatch]) -> Table:
    table = columns("LANE", "JOB", "TYPE", "ATTEMPT", "HELD", "WORKER", right=("ATTEMPT", "HELD"))
    for lane in lanes:
        for job in lane.jobs:
            table.add_row(
                lane.lane, str(job.id), visible(job.job_type), str(job.attempt),
                seconds(job.held_s), visible(job.worker),
            )  # fmt: skip
        if lane.running > len(lane.jobs):
            table.add_row(lane.lane, f"and {lane.running - len(lane.jobs)} more")
    return table
