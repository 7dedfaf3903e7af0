"""Job ids on the command line: a prefix finds its job, and tables show short ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from laneway.cli import connection
from laneway.cli.output import note, visible

if TYPE_CHECKING:
    from laneway.cli.connection import Backend
    from laneway.domain.job_id import IdMatches, IdPrefix

T = TypeVar("T")


def run(given: UUID | IdPrefix, verb: Callable[[Backend, UUID], Awaitable[T]]) -> T:
    """Run one verb on the job with this id or prefix."""

    async def once(backend: Backend) -> T:
        return await verb(backend, await resolve(backend, given))

    return connection.run(once)


async def resolve(backend: Backend, given: UUID | IdPrefix) -> UUID:
    """The full id; prints the candidates of a prefix that several jobs have."""
    from laneway.domain.job_id import only_match

    if isinstance(given, UUID):
        return given
    (found,) = await backend.find_ids([given.text])
    if found.only is None:
        await _note_candidates(backend, found)
    return only_match(given, found)


async def _note_candidates(backend: Backend, found: IdMatches) -> None:
    from laneway.errors import NotFound

    for job_id in found.ids:
        try:
            job = (await backend.review(job_id)).job
        except NotFound:
            continue
        note(f"  {job_id} {visible(job.job_type)} {job.label}")
    if found.is_more:
        note("  …")


async def short_ids(backend: Backend, ids: Iterable[UUID]) -> dict[UUID, str]:
    """The shortest prefix of each id that commands accept; full ids if they cannot be looked up."""
    from laneway.domain.job_id import MOST_PREFIXES, TIME_DIGITS, shortened
    from laneway.errors import LanewayError

    wanted = list(dict.fromkeys(ids))
    short: dict[UUID, str] = {}
    try:
        for start in range(0, len(wanted), MOST_PREFIXES):
            some = wanted[start : start + MOST_PREFIXES]
            near = await backend.find_ids([one.hex[:TIME_DIGITS] for one in some])
            short |= shortened(dict(zip(some, near, strict=True)))
    except LanewayError:
        return {one: str(one) for one in wanted}
    return short
