"""Facts about jobs that a drawn flow shows, and its graph does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from laneway.cli.job_ids import short_ids
from laneway.cli.output import visible
from laneway.domain.filter import JobFilter
from laneway.domain.states import Status, label_of
from laneway.domain.verb_rules import LONGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from uuid import UUID

    from laneway.cli.connection import Backend
    from laneway.domain.flow import FlowJob
    from laneway.domain.job import Job
    from laneway.domain.job_error import JobError

_MOST_PAGES: Final = 50


@dataclass(frozen=True, slots=True)
class FlowDetails:
    """Facts about the jobs of a flow that its graph does not hold."""

    # Jobs that a person or a policy approved, and that have not started.
    approved: frozenset[UUID] = frozenset()
    # The shortest prefixes of ids, and the first lines of errors.
    ids: Mapping[UUID, str] = field(default_factory=dict)
    errors: Mapping[UUID, str] = field(default_factory=dict)

    def label(self, job: FlowJob) -> str:
        """The status for people, as lists of jobs show it."""
        return label_of(job.status, "someone" if job.id in self.approved else None)


async def read_details(
    backend: Backend, flow_id: UUID, jobs: Iterable[FlowJob], alone: Sequence[FlowJob] = ()
) -> FlowDetails:
    """The details of these jobs of a flow; ids and errors of those that stand `alone`."""
    approved: set[UUID] = set()
    if any(job.status is Status.APPROVED for job in jobs):
        wanted = JobFilter(flow=flow_id, status=Status.APPROVED, was_approved=True)
        approved = {job.id async for job in _listed(backend, wanted)}
    ids = await short_ids(backend, (job.id for job in alone)) if alone else {}
    errors = await _errors(backend, flow_id, alone)
    return FlowDetails(frozenset(approved), ids, errors)


async def _errors(backend: Backend, flow_id: UUID, jobs: Iterable[FlowJob]) -> dict[UUID, str]:
    """The first lines of the errors of the failed jobs among these."""
    failed = {job.id: job for job in jobs if job.status is Status.FAILED}
    # Only the type is known of an error that is on none of the pages read.
    errors = {job.id: visible(job.error_type) for job in failed.values() if job.error_type}
    left = set(failed)
    if not left:
        return errors
    async for job in _listed(backend, JobFilter(flow=flow_id, status=Status.FAILED)):
        if job.id in left:
            left.remove(job.id)
            if job.error is not None:
                errors[job.id] = _first_line(job.error)
            if not left:
                break
    return errors


def _first_line(error: JobError) -> str:
    first = next(iter(error.message.strip().splitlines()), "")
    return visible(f"{error.type}: {first}" if first else error.type)


async def _listed(backend: Backend, wanted: JobFilter) -> AsyncIterator[Job]:
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await backend.list_jobs(wanted, limit=LONGEST_PAGE, cursor=cursor)
        for job in page.items:
            yield job
        cursor = page.next_cursor
        if cursor is None:
            return
