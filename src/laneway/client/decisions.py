"""An application's decisions about jobs, each with its audit entry in the same transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from laneway.domain import verb_rules
from laneway.domain.states import LIVE, Status
from laneway.domain.verb_rules import State
from laneway.store import approvals, audit, jobs
from laneway.store.approvals import Decided
from laneway.store.jobs import FoundState

if TYPE_CHECKING:
    from laneway.store.database import Runner

# The audit entry's principal if the application names none.
APPLICATION: Final = "application"


async def cancel(runner: Runner, job_id: UUID, by: str | None, reason: str | None) -> FoundState:
    """Cancels a job; returns the state found, whether or not the cancel was accepted."""
    found = await runner.run(jobs.cancel(job_id, by, reason))
    if found.found_in in LIVE:
        status = verb_rules.after_cancel(job_id, found.found_in, found.concerns)
        states = verb_rules.audited_cancel(found.found_in, status, reason)
        await _record(runner, by, "job.cancelled", job_id, found.workspace, states)
    return found


async def approve(
    runner: Runner, job_id: UUID, by: str, comment: str | None, seal: str | None
) -> Decided:
    """Approves a job; returns the decision, whether or not it was accepted."""
    found = await runner.run(approvals.approve(job_id, by, comment, seal))
    if found.is_accepted:
        states = verb_rules.audited_decision(Status.APPROVED, comment)
        await _record(runner, by, "job.approved", job_id, found.workspace, states)
    return found


async def reject(runner: Runner, job_id: UUID, by: str, reason: str) -> Decided:
    """Rejects a job; returns the decision, whether or not it was accepted."""
    found = await runner.run(approvals.reject(job_id, by, reason))
    if found.is_accepted:
        states = verb_rules.audited_decision(Status.CANCELLED, reason)
        await _record(runner, by, "job.rejected", job_id, found.workspace, states)
    return found


async def _record(
    runner: Runner,
    by: str | None,
    action: str,
    job_id: UUID,
    workspace: str | None,
    states: tuple[State, State],
) -> None:
    before, after = states
    principal = APPLICATION if by is None else by
    await runner.run(
        audit.record(
            principal, action, "job", str(job_id), workspace=workspace, before=before, after=after
        )
    )
