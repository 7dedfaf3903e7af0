"""What an application decides about a job, each with its act in the audit, in one transaction."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from laneway.domain import verb_rules
from laneway.domain.states import TERMINAL, Status
from laneway.domain.verb_rules import State
from laneway.store import approvals, audit, jobs
from laneway.store.approvals import Decided
from laneway.store.database import Runner
from laneway.store.jobs import FoundState

# Who is kept where the application does not say.
APPLICATION: Final = "application"
_LIVE: Final = frozenset(status.value for status in Status if status not in TERMINAL)


async def cancel(runner: Runner, job_id: UUID, by: str | None, reason: str | None) -> FoundState:
    """The answer to a cancel, whether or not it was accepted."""
    answer = await runner.run(jobs.cancel(job_id, by, reason))
    if answer.found_in in _LIVE:
        status = verb_rules.after_cancel(job_id, answer.found_in, answer.concerns)
        states = verb_rules.cancelled(answer.found_in, status, reason)
        await _keep(runner, by, "job.cancelled", job_id, answer.workspace, states)
    return answer


async def approve(
    runner: Runner, job_id: UUID, by: str, comment: str | None, seal: str | None
) -> Decided:
    """The answer to an approval, whether or not it was accepted."""
    answer = await runner.run(approvals.approve(job_id, by, comment, seal))
    if answer.is_taken:
        states = verb_rules.decided(Status.APPROVED, comment)
        await _keep(runner, by, "job.approved", job_id, answer.workspace, states)
    return answer


async def reject(runner: Runner, job_id: UUID, by: str, reason: str) -> Decided:
    """The answer to a rejection, whether or not it was accepted."""
    answer = await runner.run(approvals.reject(job_id, by, reason))
    if answer.is_taken:
        states = verb_rules.decided(Status.CANCELLED, reason)
        await _keep(runner, by, "job.rejected", job_id, answer.workspace, states)
    return answer


async def _keep(
    runner: Runner,
    by: str | None,
    action: str,
    job_id: UUID,
    workspace: str | None,
    states: tuple[State, State],
) -> None:
    before, after = states
    who = APPLICATION if by is None else by
    await runner.run(
        audit.record(
            who, action, "job", str(job_id), workspace=workspace, before=before, after=after
        )
    )
