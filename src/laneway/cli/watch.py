"""Following one job to its end: a progress bar for a person, JSON Lines for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laneway.cli import output
from laneway.cli.exits import ExitCode
from laneway.cli.output import note, show_json, visible
from laneway.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from laneway.cli.session import Backend
    from laneway.domain.job import Job


def outcome_code(job: Job) -> ExitCode:
    return ExitCode.OK if job.status.value == "completed" else ExitCode.FAILED


async def follow_as_json(backend: Backend, job_id: UUID, interval: float) -> Job:
    """One line per change, without attempts, which are not read; answers the job as it ended."""

    def tell(job: Job) -> None:
        told = job.to_dict()
        del told["attempts"]
        show_json(told)

    return await _follow(backend, job_id, interval, tell)


async def follow_quietly(backend: Backend, job_id: UUID, interval: float) -> Job:
    """Answers the job as it ended."""
    return await _follow(backend, job_id, interval, lambda job: None)


async def _follow(
    backend: Backend, job_id: UUID, interval: float, on_change: Callable[[Job], None]
) -> Job:
    last: Job | None = None
    async for job in backend.follow(job_id, interval):
        on_change(job)
        last = job
    if last is None:
        raise NotFound(f"no job {job_id}")
    return last


async def follow_with_bar(backend: Backend, job_id: UUID, interval: float) -> Job:
    """A bar on stderr that moves; answers the job as it ended."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=output.console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, message="")

        def draw(job: Job) -> None:
            told = job.progress
            words = (told.stage, told.message) if told else ()
            bar.update(
                task,
                description=f"{visible(job.job_type)} {job.label}",
                total=told.total if told else None,
                completed=(told.done or 0) if told else 0,
                message=visible(" ".join(word for word in words if word)),
            )

        return await _follow(backend, job_id, interval, draw)


def say_outcome(job: Job) -> None:
    """The end in one line, on stderr."""
    note(f"job {job.id} {job.status.value}{visible(job.why_ended)}")
