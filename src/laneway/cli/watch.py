"""Follow one job until it ends, with a progress bar or as JSON Lines."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from laneway.cli import output
from laneway.cli.exits import ExitCode
from laneway.cli.job_ids import resolve
from laneway.cli.name_notes import note_unserved_type
from laneway.cli.output import note, show_json, visible
from laneway.errors import LanewayError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from laneway.cli.connection import Backend
    from laneway.domain.job import Job
    from laneway.domain.job_id import IdPrefix

INTERVAL_S = 0.2
# Between two notes that no live worker has the type of a job that is waited for.
NOTE_S = 30.0
MOST_AT_ONCE = 10


def outcome_code(job: Job) -> ExitCode:
    return ExitCode.OK if job.status.value == "completed" else ExitCode.FAILED


async def follow_as_json(backend: Backend, job_id: UUID, interval: float) -> Job:
    """Print a line per change, without attempts, and return the ended job."""

    def show(job: Job) -> None:
        fields = job.to_dict()
        del fields["attempts"]
        show_json(fields)

    return await _follow(backend, job_id, interval, show)


async def follow_quietly(backend: Backend, job_id: UUID, interval: float) -> Job:
    """Return the job once it has ended."""
    return await _follow(backend, job_id, interval, lambda job: None)


async def wait_for_all(
    backend: Backend, ids: Sequence[UUID | IdPrefix], timeout: float | None
) -> list[Job]:
    """The jobs once all have ended, in the order given; at the timeout as they are then."""
    import asyncio

    full = list(dict.fromkeys([await resolve(backend, each) for each in ids]))
    # A server bounds the open streams of a token.
    room = asyncio.Semaphore(MOST_AT_ONCE)

    async def wait_for(job_id: UUID) -> None:
        async with room:
            await follow_quietly(backend, job_id, INTERVAL_S)

    try:
        async with asyncio.timeout(timeout):
            await asyncio.gather(*map(wait_for, full))
    except TimeoutError:
        note(f"not all jobs ended within {output.seconds(timeout)}")
    return [(await backend.review(job_id)).job for job_id in full]


async def wait_for_submitted(
    backend: Backend, job: Job, timeout: float | None, *, note_now: bool
) -> Job:
    """The job once it has ended, or as it is at the timeout; notes while no worker serves it."""
    import asyncio

    follow = follow_with_bar if output.is_terminal() else follow_quietly
    noting = asyncio.ensure_future(_note_while_unserved(backend, job.job_type, note_now))
    try:
        async with asyncio.timeout(timeout):
            return await follow(backend, job.id, INTERVAL_S)
    except TimeoutError:
        note(f"the job has not ended within {output.seconds(timeout)}; it goes on")
        return (await backend.review(job.id)).job
    finally:
        noting.cancel()
        await asyncio.wait({noting})


async def _note_while_unserved(backend: Backend, job_type: str, note_now: bool) -> None:
    import asyncio

    while True:
        if note_now:
            # It only explains: the wait does not depend on it.
            with suppress(LanewayError):
                await note_unserved_type(backend, job_type)
        note_now = True
        await asyncio.sleep(NOTE_S)


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
    """Show a progress bar on stderr and return the ended job."""
    from laneway.client.progress_bar import terminal_bar

    with terminal_bar(output.console(stderr=True), transient=True) as draw:
        return await _follow(backend, job_id, interval, draw)


def note_outcome(job: Job) -> None:
    """Print the outcome, or the status of a job that has not ended, on stderr."""
    note(f"job {job.id} {job.label}{visible(job.why_ended)}")
