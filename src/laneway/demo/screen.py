"""The live view: lanes with their slots, running jobs, events. Fits in 80×24."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from laneway.demo.events import EventLog, JobStates
from laneway.demo.workers import DemoWorkers
from laneway.domain.overview import ActiveJob, LaneStatus, Overview

SLOTS_SHOWN = 16
BAR = 22
# Minimum widths keep the columns in place while their content changes.
LANE_COLUMNS = (("LANE", 13), ("SLOTS", SLOTS_SHOWN), ("", 12))
RUNNING_COLUMNS = (("RUNNING", 13), ("ATTEMPT", 7), ("WORKER", 9), ("", BAR), ("", 14))
TALLEST = 32
EVENTS_AT_LEAST = 3
RUNNING_AT_LEAST = 3


def live_view(console: Console) -> Live | None:
    """The live display; None without a terminal."""
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    return Live(console=console, auto_refresh=False, vertical_overflow="crop")


class Screen:
    """Draws one frame at a time."""

    def __init__(
        self, console: Console, workers: DemoWorkers, event_log: EventLog, job_states: JobStates
    ) -> None:
        self._console = console
        self._workers = workers
        self._event_log = event_log
        self._job_states = job_states
        is_plain = not (console.encoding or "").lower().startswith("utf")
        self._full, self._free = ("#", ".") if is_plain else ("■", "□")

    def frame(self, overview: Overview, footer: Sequence[str]) -> RenderableType:
        lanes = self._lanes(overview.lanes)
        # Title, two headings, three blank lines; the rest is shared by jobs and events.
        room = min(self._console.height, TALLEST) - 1 - 6 - len(overview.lanes) - 1 - len(footer)
        running = max(RUNNING_AT_LEAST, min(8, room - 6))
        events = max(EVENTS_AT_LEAST, room - running)
        parts: list[RenderableType] = [
            self._title(overview),
            Text(""),
            lanes,
            Text(""),
            self._running(overview.active, running),
            Text("WHAT HAPPENED", "bold"),
            self._event_lines(events),
        ]
        if footer:
            parts.append(Text("\n".join(footer), "cyan", no_wrap=True, overflow="ellipsis"))
        return Group(*parts)

    def _title(self, overview: Overview) -> Text:
        workers = ", ".join(sorted(worker.letter for worker in self._workers.alive))
        status = f" · {self._event_log.elapsed_s:.0f} s · workers {workers or 'none'}"
        title = Text("Laneway demo", "bold", no_wrap=True, overflow="ellipsis")
        title.append(f"{status} · {self._job_states.ended} jobs ended · Ctrl-C ends", "not bold")
        if overview.gate.paused:
            title.append(" · PAUSED", "bold red")
        return title

    def _lanes(self, lanes: Sequence[LaneStatus]) -> Table:
        table = _table(LANE_COLUMNS, right=("WAITING", "ENDED"))
        for each in lanes:
            bound, used = each.lane.max_slots, each.slots_used
            shown = min(bound if bound is not None else used, SLOTS_SHOWN)
            blocks = Text(self._full * min(used, shown), "green")
            blocks.append(self._free * max(0, shown - used), "dim")
            table.add_row(
                each.lane.name if each.lane.enabled else f"{each.lane.name} (drained)",
                blocks,
                f"{used} of {bound}" if bound is not None else f"{used}, no limit",
                str(each.depth),
                str(self._job_states.ended_in(each.lane.name)),
            )
        return table

    def _running(self, active: Sequence[ActiveJob], rows: int) -> Table:
        table = _table(RUNNING_COLUMNS)
        # Jobs with progress first: the others come and go too fast to read.
        ordered = sorted(active, key=lambda job: (job.progress is None, -job.held_s))
        for job in ordered[:rows]:
            table.add_row(*self._row(job))
        for _ in range(rows - len(ordered)):
            table.add_row("")
        return table

    def _row(self, job: ActiveJob) -> tuple[RenderableType, ...]:
        progress = job.progress
        bar: RenderableType = ""
        state = f"{job.held_s:.1f} s"
        if progress is not None and progress.percent is not None:
            bar = ProgressBar(total=100, completed=progress.percent, width=BAR)
            state = f"{progress.done:g}/{progress.total:g} {progress.stage or ''}"
        if job.cancel_requested_at is not None:
            state = "cancelling"
        letter = self._workers.letter(job.claimed_by)
        is_alive = self._workers.is_alive(job.claimed_by)
        worker = Text(letter) if is_alive else Text(f"{letter} is gone", "red")
        return Text(job.job_type), str(job.attempt), worker, bar, Text(state)

    def _event_lines(self, rows: int) -> Text:
        shown = list(self._event_log.events)[-rows:]
        lines = [f"{at:5.1f}  {text}" for at, text in shown]
        lines += [""] * (rows - len(lines))
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _table(columns: Sequence[tuple[str, int]], right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, width in columns:
        table.add_column(name, no_wrap=True, min_width=width)
    for name in right:
        table.add_column(name, no_wrap=True, justify="right")
    return table
