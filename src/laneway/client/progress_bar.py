"""The progress bar of a job: HTML in a notebook, a bar in a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from laneway.domain.duration import check_wait
from laneway.domain.job import Job
from laneway.domain.states import TERMINAL
from laneway.domain.text import visible
from laneway.errors import DatabaseUnavailable, SchemaMismatch, UnsuitableDatabase

if TYPE_CHECKING:
    from rich.console import Console

Draw = Callable[[Job], None]

_INTERVAL_S: Final = 0.2
# Without a terminal, a line for each step of this many percent.
_STEP: Final = 10


def progress_bar() -> AbstractContextManager[Draw]:
    """A function that draws a job each time it is called, where its caller can see it."""
    if _is_notebook():
        return _notebook_bar()
    if sys.stderr.isatty():
        from rich.console import Console

        return terminal_bar(Console(stderr=True))
    return _lines()


@contextmanager
def terminal_bar(console: Console, *, transient: bool = False) -> Iterator[Draw]:
    """A bar that `console` draws again and again; a transient one is erased at the end."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=console,
        transient=transient,
    ) as bar:
        task = bar.add_task("", total=None, message="")

        def draw(job: Job) -> None:
            done, total = _position(job)
            bar.update(
                task, description=_title(job), total=total, completed=done, message=_message(job)
            )

        yield draw


@contextmanager
def _notebook_bar() -> Iterator[Draw]:
    from IPython.display import display

    shown: Any = None

    def draw(job: Job) -> None:
        nonlocal shown
        # Raw, with text for front ends that show no HTML.
        data = {"text/html": _html(job), "text/plain": _line(job)}
        if shown is None:
            shown = display(data, raw=True, display_id=True)
        else:
            shown.update(data, raw=True)

    yield draw


@contextmanager
def _lines() -> Iterator[Draw]:
    last: tuple[object, ...] = ()

    def draw(job: Job) -> None:
        nonlocal last
        done, total = _position(job)
        step = int(100 * done / total) // _STEP if total else None
        if (now := (job.status, job.attempt, step)) != last:
            last = now
            sys.stderr.write(f"{_line(job)}\n")
            sys.stderr.flush()

    yield draw


class Watch:
    """One watch of a job: the pauses between two looks, and its timeout."""

    def __init__(self, job_id: UUID, timeout: float | timedelta | None) -> None:
        self._job_id = job_id
        self._timeout_s = None if timeout is None else check_wait(timeout, "timeout")
        self._deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        self.has_ended = False

    @contextmanager
    def drawing(self, draw: Draw) -> Iterator[Draw]:
        """Draws what the block reads; while the database is unreachable, the watch goes on."""

        def see(job: Job) -> None:
            draw(job)
            self.has_ended = job.status in TERMINAL

        try:
            yield see
        except (SchemaMismatch, UnsuitableDatabase):
            raise
        except DatabaseUnavailable:
            pass

    def pause_s(self) -> float:
        """The time until the next look; TimeoutError if none is left."""
        if self.has_ended or self._deadline is None:
            return 0.0 if self.has_ended else _INTERVAL_S
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"job {self._job_id} did not end within {self._timeout_s:g} s and goes on;"
                f" `laneway jobs explain {self._job_id}` says why"
            )
        return min(_INTERVAL_S, left)


def _is_notebook() -> bool:
    """Whether a Jupyter kernel runs this; a terminal's IPython has no kernel."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _position(job: Job) -> tuple[float, float | None]:
    """The work done and all of it; a completed job has done it all."""
    done, total = (job.progress.done, job.progress.total) if job.progress else (None, None)
    if job.status.value == "completed":
        return (total or 1.0), (total or 1.0)
    return (done or 0.0), total


def _title(job: Job) -> str:
    return f"{visible(job.job_type)} {job.label}"


def _message(job: Job) -> str:
    if job.status in TERMINAL:
        return visible(job.why_ended.removeprefix(": "))
    parts = (job.progress.stage, job.progress.message) if job.progress else ()
    return visible(" ".join(part for part in parts if part))


def _line(job: Job) -> str:
    done, total = _position(job)
    percent = f"{100 * done / total:.0f} %" if total else ""
    return " ".join(part for part in (_title(job), percent, _message(job)) if part)


def _html(job: Job) -> str:
    done, total = _position(job)
    # Without a value, browsers show that the work goes on.
    value = (
        "" if not total and job.status not in TERMINAL else f' value="{done}" max="{total or 1}"'
    )
    return f"<progress{value}></progress> <code>{escape(_line(job))}</code>"
