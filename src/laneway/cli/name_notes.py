"""Notes about unknown lanes and job types, with the nearest known name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laneway.cli.output import note, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laneway.cli.connection import Backend
    from laneway.domain.job_type import PublishedType


async def note_unknown_names(backend: Backend, options: dict[str, Any]) -> None:
    """Print a note when a filter names a lane or a job type that is unknown or not visible."""
    await note_unknown_lane(backend, options["lane"])
    await note_unknown_type(backend, options["job_type"])


async def note_unknown_type(backend: Backend, job_type: str | None) -> None:
    """Print a note when a published job type is like the unknown one of a filter."""
    if job_type is None or (published := await _published(backend)) is None:
        return
    if similar := _similar(job_type, published):
        note(f"no worker has published {visible(job_type)}{visible(similar)}")


async def note_unpublished_types(backend: Backend, job_types: Iterable[str]) -> None:
    """Print a note for each job type that was named and that no worker has published."""
    from laneway.domain.webhook import WEBHOOK_TYPE

    # Laneway's own type is published by the first worker that delivers.
    named = [each for each in job_types if each != WEBHOOK_TYPE]
    if not named or (published := await _published(backend)) is None:
        return
    known = {each.name for each in published}
    for job_type in named:
        if job_type not in known:
            similar = _similar(job_type, published)
            note(f"no worker has published {visible(job_type)} yet{visible(similar)}")


async def note_unknown_lane(backend: Backend, lane: str | None) -> None:
    """Print a note when a filter names a lane that does not exist or is not visible."""
    from laneway.domain.missing import hint
    from laneway.errors import Forbidden
    from laneway.operations.lanes import list_lanes

    if lane is None:
        return
    try:
        known = {each.lane.name for each in await backend.items(list_lanes())}
    except Forbidden:
        return
    if lane not in known:
        note(f"no lane {visible(lane)}; {hint('lane', lane, known)}")


async def note_unserved_type(backend: Backend, job_type: str) -> None:
    """Print a note when no live worker has the job type of a job that waits."""
    published = await _published(backend)
    if published is None or any(each.name == job_type and each.is_known for each in published):
        return
    note(
        f"no live worker has {visible(job_type)}: the job waits until one does"
        f"{visible(_similar(job_type, published))}"
    )


async def _published(backend: Backend) -> list[PublishedType] | None:
    """The published job types; None if the caller may not see them."""
    from laneway.errors import Forbidden
    from laneway.operations.job_types import list_job_types

    try:
        return await backend.items(list_job_types())
    except Forbidden:
        return None


def _similar(job_type: str, published: list[PublishedType]) -> str:
    from laneway.domain.suggestion import suggest

    known = {each.name for each in published}
    return "" if job_type in known else suggest(job_type, known)
