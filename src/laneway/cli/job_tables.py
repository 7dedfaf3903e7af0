"""Tables of jobs, and of one job with its steps and attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from laneway.cli.output import moment, seconds, to_json, visible
from laneway.cli.tables import STYLES, ago, columns, cut, fields, progress_text
from laneway.domain.states import TERMINAL, Status

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.domain.job import Attempt, Job
    from laneway.domain.review import HandlerWait, Review, Step
    from laneway.domain.wait import WaitsFor

# Screens with fewer columns leave out some of the table.
WIDE: Final = 120
_COLUMNS: Final = (
    "ID", "TYPE", "LANE", "STATUS", "PRIO", "TRY", "AGE", "TOOK", "TAGS", "WORKER", "DETAIL",
)  # fmt: skip
_ONLY_WIDE: Final = ("LANE", "PRIO", "TRY", "WORKER")


def jobs(items: Iterable[Job], short: Mapping[UUID, str] = {}, *, width: int = WIDE) -> Table:
    """Render a list of jobs; `short` has ids to show instead of the full ones.

    A screen that is not wide shows fewer columns, so that tags and errors stay readable.
    """
    names = [name for name in _COLUMNS if width >= WIDE or name not in _ONLY_WIDE]
    table = columns(
        *names, right=("PRIO", "TRY", "AGE", "TOOK"), folding=("TYPE", "TAGS", "WORKER", "DETAIL")
    )
    for job in items:
        cells: dict[str, RenderableType] = {
            "ID": short.get(job.id) or str(job.id),
            "TYPE": cut(job.job_type),
            "LANE": job.lane,
            "STATUS": Text(job.label, STYLES.get(job.status.value, "")),
            "PRIO": str(job.priority),
            "TRY": str(job.tries),
            "AGE": ago(job.created_at),
            "TOOK": seconds(run_time(job)),
            "TAGS": cut(", ".join(job.tags) or "-"),
            "WORKER": cut(job.worker or "-"),
            "DETAIL": cut(detail(job)),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def run_time(job: Job) -> float | None:
    """Seconds that the last attempt of a job ran, or runs."""
    if job.started_at is None:
        return None
    return ((job.finished_at or datetime.now(UTC)) - job.started_at).total_seconds()


def detail(job: Job) -> str:
    """The reason of a failure or cancel, what a job waits for, or the progress of a running job.

    For a queued job: which retry it is, and when it is due.
    """
    if job.status in TERMINAL:
        return job.why_ended.removeprefix(":").strip()
    if job.waits_for is not None:
        return f"waits for {waits_text(job.waits_for)}"
    if job.status is Status.RUNNING:
        return progress_text(job.progress)
    return _due_text(job) if job.status is Status.APPROVED else ""


def _due_text(job: Job) -> str:
    retry = f"retry {job.retries} of {job.max_retries}" if job.retries else ""
    left = (job.run_at - datetime.now(UTC)).total_seconds() if job.run_at else 0.0
    if left <= 0:
        return retry
    return f"{retry or 'due'} in {seconds(left)}"


def waits_text(waits: WaitsFor) -> str:
    """Describe the wait of a job in a few words."""
    if waits.kind == "event":
        what = visible(f"event {waits.event or waits.name} {waits.key or ''}").strip()
    elif waits.kind == "sleep":
        what = "its sleep"
    else:
        count = waits.missing or 0
        what = f"{count} {'sub-' if waits.kind == 'sub_jobs' else ''}job{'' if count == 1 else 's'}"
    return what + (f", until {moment(waits.until)}" if waits.until else "")


def job(
    seen: Review,
    approval: RenderableType | None = None,
    *,
    log_lines: int,
    around: Mapping[str, str] = {},
) -> RenderableType:
    """Render one job field by field, its approval, its steps and waits, then its attempts.

    `around`: more fields, of the jobs around it.
    """
    shown = seen.job
    grid = fields()
    for name, value in shown.to_dict().items():
        if name in ("attempts", "error", "label") or value in (None, [], ""):
            continue
        if name == "analysis" and approval is not None:
            continue
        if name == "status":
            grid.add_row(name, _label_and_status(shown))
        elif name == "progress":
            # A report without values only counts as progress.
            if text := progress_text(shown.progress):
                grid.add_row(name, text)
        elif isinstance(at := getattr(shown, name, None), datetime):
            grid.add_row(name, moment(at))
        else:
            text = value if isinstance(value, str) else to_json(value)
            grid.add_row(name, visible(text))
    for name, text in around.items():
        grid.add_row(name, text)
    parts: list[RenderableType] = [grid]
    if approval is not None:
        parts.append(approval)
    if shown.error is not None:
        parts.append(Text(f"error  {visible(shown.error.type)}: {visible(shown.error.message)}"))
        # The attempt that failed shows the traceback.
        if all(_traceback(each) != shown.error.traceback for each in shown.attempts):
            parts.extend(_lines(shown.error.traceback))
    if seen.steps:
        parts += [Text(""), steps(seen.steps)]
    if seen.waits:
        parts += [Text(""), waits(seen.waits)]
    return Group(*parts, attempts(shown.attempts, log_lines))


def _traceback(each: Attempt) -> str | None:
    return None if each.error is None else each.error.traceback


def steps(items: Iterable[Step]) -> Table:
    table = columns("STEP", "ATTEMPT", "TOOK", "AT", right=("ATTEMPT", "TOOK"))
    for each in items:
        table.add_row(visible(each.name), str(each.attempt), seconds(each.took_s), moment(each.at))
    return table


def waits(items: Iterable[HandlerWait]) -> Table:
    table = columns("WAIT", "FOR", "ASKED", "ENDED", "BY", "SENT", folding=("WAIT", "FOR", "BY"))
    for each in items:
        what = "sleep"
        if each.kind == "sub_jobs":
            what = f"{each.jobs} sub-jobs"
        elif each.kind == "event":
            what = f"event {each.event}" + (f", key {each.key}" if each.key else "")
        by = each.sent_by or ""
        if each.kind == "event" and each.ended_at and each.event_id is None:
            by = "timeout"
        ended = moment(each.ended_at) if each.ended_at else ""
        sent = moment(each.sent_at) if each.sent_at else ""
        asked = moment(each.asked_at)
        table.add_row(visible(each.name), visible(what), asked, ended, visible(by), sent)
    return table


def attempts(items: Iterable[Attempt], lines: int) -> RenderableType:
    """Render the outcome and newest log lines of each attempt; a repeated traceback only once."""
    printed: set[str] = set()
    return Group(*(part for each in items for part in _attempt(each, printed, lines)))


def _attempt(each: Attempt, printed: set[str], lines: int) -> Iterator[RenderableType]:
    began = each.started_at or each.claimed_at
    ran = seconds((each.finished_at - began).total_seconds()) if each.finished_at and began else ""
    head = f"attempt {each.attempt}  {each.outcome or 'running'}  {ran}".rstrip()
    worker = visible(str(each.worker or each.claimed_by or ""))
    yield Text(f"\n{head}  {worker}  {moment(began)}", "bold")
    if each.error is not None:
        yield Text(f"  {visible(each.error.type)}: {visible(each.error.message)}")
        traceback = each.error.traceback
        if traceback in printed:
            yield Text("  the same traceback as above", "dim")
        elif traceback is not None:
            yield from _lines(traceback)
            printed.add(traceback)
    shown = each.log[-lines:] if lines else ()
    if (earlier := each.log_lines - len(shown)) > 0:
        more = " (--logs N shows more)" if len(shown) < len(each.log) else ""
        yield Text(f"  … and {earlier:,} earlier {'lines' if earlier > 1 else 'line'}{more}", "dim")
    for entry in shown:
        at = entry.at.astimezone().strftime("%H:%M:%S")
        yield Text(f"  {at} {visible(entry.level)} {visible(entry.message)}")


def _lines(traceback: str | None) -> Iterator[Text]:
    """The traceback without the frames of Laneway and the standard library."""
    from laneway.engine.run.user_frames import is_foreign, keep_frames

    for text in keep_frames(traceback or "", is_foreign):
        yield Text(f"  {visible(text)}", "dim")


def _label_and_status(job: Job) -> Text:
    status, label = job.status.value, job.label
    return Text(label if label == status else f"{label} ({status})", STYLES.get(status, ""))
