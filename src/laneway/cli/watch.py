"""Following one job to its end: a progress bar for a person, JSON Lines for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laneway.cli import output
from laneway.cli.exits import ExitCode
from laneway.cli.output import note, show_json, visible

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.domain.job import Job
    from laneway.store.database import Database


def outcome_code(job: Job) -> ExitCode:
    return ExitCode.OK if job.status.value == "completed" else ExitCode.FAILED


async def follow_as_json(db: Database, job_id: UUID, interval: float) -> Job:
    """One line per change; answers the job as it ended."""
    from laneway.control import jobs

    job: Job | None = None
    async for job in jobs.follow(db, job_id, interval=interval):
        show_json(job.to_dict())
    assert job is not None  # noqa: S101 - follow yields at least once or raises
    return job


async def follow_with_bar(db: Database, job_id: UUID, interval: float) -> Job:
    """A bar on stderr that moves; answers the job as it ended."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from laneway.control import jobs

    job: Job | None = None
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
        async for job in jobs.follow(db, job_id, interval=interval):
            told = job.progress
            words = (told.stage, told.message) if told else ()
            bar.update(
                task,
                description=f"{visible(job.job_type)} {job.status.value}",
                total=told.total if told else None,
                completed=(told.done or 0) if told else 0,
                message=visible(" ".join(word for word in words if word)),
            )
    assert job is not None  # noqa: S101 - follow yields at least once or raises
    return job


def say_outcome(job: Job) -> None:
    """The end in one line, on stderr."""
    why = f": {job.error.type}: {job.error.message}" if job.error else ""
    note(f"job {job.id} {job.status.value}{visible(why)}")
