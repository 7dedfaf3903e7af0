"""Facts about jobs that a drawn flow shows, and its graph does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from laneway.domain.filter import JobFilter
from laneway.domain.states import Status, label_of
from laneway.domain.verb_rules import LONGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from uuid import UUID

    from laneway.cli.connection import Backend
    from laneway.domain.flow import FlowJob
    from laneway.domain.job import Job

_MOST_PAGES: Final = 50


@dataclass(frozen=True, slots=True)
class FlowDetails:
    """Facts about the jobs of a flow that its graph does not hold."""

    # Jobs that a person or a policy approved, and that have not started.
    approved: frozenset[UUID] = frozenset()

    def label(self, job: FlowJob) -> str:
        """The status for people, as lists of jobs show it."""
        return label_of(job.status, "someone" if job.id in self.approved else None)


async def read_details(backend: Backend, flow_id: UUID, jobs: Iterable[FlowJob]) -> FlowDetails:
    """The details of these jobs of a flow."""
    approved: set[UUID] = set()
    if any(job.status is Status.APPROVED for job in jobs):
        wanted = JobFilter(flow=flow_id, status=Status.APPROVED, was_approved=True)
        approved = {job.id async for job in _listed(backend, wanted)}
    return FlowDetails(frozenset(approved))


async def _listed(backend: Backend, wanted: JobFilter) -> AsyncIterator[Job]:
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await backend.list_jobs(wanted, limit=LONGEST_PAGE, cursor=cursor)
        for job in page.items:
            yield job
        cursor = page.next_cursor
        if cursor is None:
            return
