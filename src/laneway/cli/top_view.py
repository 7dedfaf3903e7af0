"""The state and the frame of `laneway top`: which rows are shown, and what a key does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from rich.console import Group, RenderableType
from rich.text import Text

from laneway.cli import job_tables, tables
from laneway.cli.output import moment, seconds, visible
from laneway.domain.states import Status

if TYPE_CHECKING:
    from laneway.domain.job import Job
    from laneway.domain.overview import ActiveJob, LaneStatus, Overview

KEYS: Final = "↑↓ select  c cancel  r retry  e explain  s sort  f status  / text  q quit"
# The views of `f`: the label and the status of the jobs.
VIEWS: Final[tuple[tuple[str, Status | None], ...]] = (
    ("running", Status.RUNNING),
    ("queued", Status.APPROVED),
    ("awaiting approval", Status.AWAITING_APPROVAL),
    ("failed", Status.FAILED),
    ("all", None),
)
_LANE_CHARS: Final = 20


class Row(NamedTuple):
    """One job of the list."""

    id: UUID
    lane: str
    job_type: str
    status: Status
    label: str
    priority: int
    took_s: float | None
    age_s: float
    worker: str
    detail: str


def of_active(job: ActiveJob) -> Row:
    """A row of a running job; the overview does not tell its priority."""
    detail = "cancel requested " if job.cancel_requested_at else ""
    return Row(
        job.id, job.lane, job.job_type, Status.RUNNING, "running", 0, job.held_s, job.held_s,
        job.worker or str(job.claimed_by), detail + tables.progress_text(job.progress),
    )  # fmt: skip


def of_job(job: Job) -> Row:
    age = (datetime.now(UTC) - job.created_at).total_seconds() if job.created_at else 0.0
    return Row(
        job.id, job.lane, job.job_type, job.status, job.label, job.priority,
        job_tables.run_time(job), age, job.worker or "-", job_tables.detail(job),
    )  # fmt: skip


SORTS: Final[dict[str, Callable[[Row], tuple[object, ...]]]] = {
    "age": lambda row: (row.age_s,),
    "run time": lambda row: (-(row.took_s or 0.0),),
    "priority": lambda row: (-row.priority, row.age_s),
    "lane": lambda row: (row.lane, row.age_s),
    "type": lambda row: (row.job_type, row.age_s),
}


class Effect(Enum):
    """The consequence of a key for the program."""

    NONE = auto()
    READ = auto()
    QUIT = auto()
    CANCEL = auto()
    RETRY = auto()
    EXPLAIN = auto()


class Question(NamedTuple):
    """A verb that waits for `y`: only this job is changed, whatever is listed by then."""

    effect: Effect
    job_id: UUID
    # The type and the short id of the job, which a refresh may take from the view.
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """The screen between two keys; `press` returns the next one."""

    overview: Overview | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    ids: Mapping[UUID, str] = field(default_factory=dict)
    view: int = 0
    sort: int = 0
    text: str = ""
    selected: UUID | None = None
    asked: Question | None = None
    # The text that is being typed.
    typed: str | None = None
    message: str = ""
    pages: tuple[str, ...] = ()

    @property
    def status(self) -> Status | None:
        return VIEWS[self.view][1]

    @property
    def shown(self) -> list[Row]:
        """The rows that match the text, in order."""
        wanted = self.text.lower()
        found = [row for row in self.rows if wanted in _searched(row)]
        return sorted(found, key=tuple(SORTS.values())[self.sort])

    @property
    def row(self) -> Row | None:
        """The selected row, at first the first one; none if the selected job has left the list."""
        shown = self.shown
        if self.selected is None:
            return shown[0] if shown else None
        return next((row for row in shown if row.id == self.selected), None)

    def press(self, key: str) -> tuple[View, Effect]:
        """The next screen, and what to do."""
        if self.pages:
            return replace(self, pages=()), Effect.NONE
        if self.asked is not None:
            return self._answer(self.asked, is_yes=key in ("y", "Y"))
        if self.typed is not None:
            return self._type(key), Effect.NONE
        return self._command(key)

    def _answer(self, asked: Question, *, is_yes: bool) -> tuple[View, Effect]:
        """Return the verb of a question if its job is still listed."""
        clear = replace(self, asked=None)
        if not is_yes:
            return replace(clear, message="nothing was changed"), Effect.NONE
        if all(row.id != asked.job_id for row in self.rows):
            gone = f"{asked.name} has left this list: nothing was changed"
            return replace(clear, message=gone), Effect.NONE
        return replace(clear, message="", selected=asked.job_id), asked.effect

    def _type(self, key: str) -> View:
        typed = self.typed or ""
        if key in ("\r", "\n"):
            return replace(self, typed=None, text=typed, selected=None)
        if key == "escape":
            return replace(self, typed=None)
        if key in ("\x7f", "\b"):
            return replace(self, typed=typed[:-1])
        return replace(self, typed=typed + key) if key.isprintable() and len(key) == 1 else self

    def _command(self, key: str) -> tuple[View, Effect]:
        clear = replace(self, message="")
        row = self.row
        match key:
            case "q" | "Q":
                return clear, Effect.QUIT
            case "down" | "j":
                return clear._move(1), Effect.NONE
            case "up" | "k":
                return clear._move(-1), Effect.NONE
            case "s":
                return replace(clear, sort=(self.sort + 1) % len(SORTS)), Effect.NONE
            case "f":
                view = (self.view + 1) % len(VIEWS)
                return replace(clear, view=view, rows=(), selected=None), Effect.READ
            case "/":
                return replace(clear, typed=""), Effect.NONE
            case "c" | "r" | "e" if row is None:
                gone = "the selected job has left this list: select another with ↑↓"
                message = "no job is selected" if self.selected is None else gone
                return replace(self, message=message), Effect.NONE
            case "c" | "r" if row is not None:
                effect = Effect.CANCEL if key == "c" else Effect.RETRY
                asked = Question(effect, row.id, f"{row.job_type} {self._short_id(row)}")
                return replace(clear, asked=asked, selected=row.id), Effect.NONE
            case "e" if row is not None:
                return replace(clear, selected=row.id), Effect.EXPLAIN
        return self, Effect.NONE

    def _move(self, by: int) -> View:
        ids = [row.id for row in self.shown]
        if not ids:
            return self
        at = ids.index(self.row.id) + by if self.row is not None else 0
        return replace(self, selected=ids[max(0, min(at, len(ids) - 1))])

    def _short_id(self, row: Row) -> str:
        return self.ids.get(row.id) or str(row.id)


def _searched(row: Row) -> str:
    return " ".join((str(row.id), row.lane, row.job_type, row.label, row.worker)).lower()


def frame(view: View, width: int, height: int, interval: float | None) -> RenderableType:
    """The whole screen; lines are as long as the screen is wide, and no more than it is high.

    Without an interval it is printed once: it names no keys.
    """
    if view.pages:
        return Group(*map(Text, view.pages), Text("\npress a key to go back", "dim"))
    seen = view.overview
    if seen is None:
        return Text(view.message or "reading …")
    lanes = seen.lanes[: max(3, height // 2 - 4)]
    more = len(seen.lanes) - len(lanes)
    parts: list[RenderableType] = [*_head(seen, interval), _lanes(lanes, view.failures)]
    if more:
        parts.append(Text(f"… and {more} more lanes", "dim"))
    parts += [Text(""), _title(view), _jobs(view, height - len(lanes) - bool(more) - 9)]
    if interval is not None or view.message:
        parts += [Text(""), _foot(view, width)]
    return Group(*parts)


def _head(seen: Overview, interval: float | None) -> Iterable[Text]:
    live = [worker for worker in seen.live if worker.runs_jobs]
    lost = [worker for worker in seen.dead if worker.runs_jobs]
    running = sum(worker.running for worker in live)
    room = sum(worker.concurrency for worker in live)
    leader = f", led by {visible(seen.leader.name)}" if seen.leader else ""
    dead = f", {len(lost)} dead" if lost else ""
    often = "" if interval is None else f"  every {seconds(interval)}"
    yield Text(f"laneway top  {moment(datetime.now(UTC))}{often}", "bold", no_wrap=True)
    yield Text(
        f"workers: {len(live)} alive{dead}, {running}/{room} running{leader}",
        "" if live else "yellow",
        no_wrap=True,
        overflow="ellipsis",
    )
    if seen.gate.paused:
        yield tables.paused(seen.gate)


def _lanes(items: Iterable[LaneStatus], failures: Mapping[str, int]) -> RenderableType:
    table = tables.columns(
        "LANE", "SLOTS", "DEPTH", "WAIT", "FAILED 1H", "STATE",
        right=("SLOTS", "DEPTH", "WAIT", "FAILED 1H"), folding=("STATE",),
    )  # fmt: skip
    for each in items:
        failed = failures.get(each.lane.name, 0)
        state = tables.lane_state(each)
        state.no_wrap, state.overflow = True, "ellipsis"
        table.add_row(
            _cut(each.lane.name, _LANE_CHARS),
            tables.slots(each),
            tables.depth(each.depth, each.depth_is_capped),
            seconds(each.oldest_wait_s),
            Text(f"{failed:,}", "red" if failed else ""),
            state,
        )
    return table


def _title(view: View) -> Text:
    found = f", matching {view.text!r}" if view.text else ""
    sort = tuple(SORTS)[view.sort]
    text = f"{VIEWS[view.view][0]} jobs{found}, by {sort}"
    return Text(visible(text), "bold", no_wrap=True, overflow="ellipsis")


def _jobs(view: View, room: int) -> RenderableType:
    shown = view.shown
    if not shown:
        return Text("no jobs", "dim")
    table = tables.columns(
        "", "JOB", "TYPE", "LANE", "STATUS", "TOOK", "WORKER", "DETAIL",
        right=("TOOK",), folding=("TYPE", "LANE", "WORKER", "DETAIL"),
    )  # fmt: skip
    chosen = view.row
    at = shown.index(chosen) if chosen else 0
    room = max(3, room)
    start = max(0, min(at - room // 2, len(shown) - room))
    for row in shown[start : start + room]:
        is_chosen = row is chosen
        table.add_row(
            ">" if is_chosen else "",
            view.ids.get(row.id) or str(row.id),
            tables.cut(row.job_type),
            tables.cut(row.lane),
            Text(row.label, tables.STYLES.get(row.status.value, "")),
            seconds(row.took_s),
            tables.cut(row.worker),
            tables.cut(row.detail),
            style="reverse" if is_chosen else "",
        )
    return table


def _foot(view: View, width: int) -> Text:
    if view.asked is not None:
        verb = view.asked.effect.name.capitalize()
        return Text(visible(f"{verb} {view.asked.name}? y/n"), "bold yellow")
    if view.typed is not None:
        return Text(visible(f"show only: {view.typed}_  (Enter applies, Esc leaves it)"), "bold")
    if view.message:
        return Text(visible(view.message), "yellow", no_wrap=True, overflow="ellipsis")
    return Text(KEYS if len(KEYS) <= width else "q quit", "dim", no_wrap=True)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
