"""Approval decisions, as statements."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from laneway.domain.approval import Decision
from laneway.domain.redaction import redact
from laneway.store.statement import Row, Statement, maybe_row


class Decided(NamedTuple):
    """The state a decision found (None: unknown job), and why it was refused if it was."""

    found_in: str | None
    refusal: str | None = None
    job_type: str | None = None
    workspace: str | None = None

    @property
    def is_accepted(self) -> bool:
        return self.found_in == "awaiting_approval" and self.refusal is None


def _decided(rows: list[Row]) -> Decided:
    return Decided(*rows[0]) if rows else Decided(None)


def approve(job_id: UUID, by: str, comment: str | None, seal: str | None) -> Statement[Decided]:
    """Approves a job; with a seal, only if the job is unchanged since the approver saw it."""
    return _decide(job_id, by, comment, seal, is_approval=True)


def reject(job_id: UUID, by: str, reason: str) -> Statement[Decided]:
    """Cancels a job that awaits approval."""
    return _decide(job_id, by, reason, None, is_approval=False)


def _decide(
    job_id: UUID, by: str, comment: str | None, seal: str | None, *, is_approval: bool
) -> Statement[Decided]:
    return Statement(
        "approvals/decide_job",
        _decided,
        {
            "id": job_id,
            "approve": is_approval,
            "by": by,
            "comment": comment and redact(comment),
            "seal": seal,
        },
    )


def decisions(job_id: UUID) -> Statement[list[Decision]]:
    """Every decision about a job, oldest first."""

    def decode(rows: list[Row]) -> list[Decision]:
        # Comments written by SQL functions are not redacted yet.
        found = (Decision(*row) for row in rows)
        return [replace(each, comment=each.comment and redact(each.comment)) for each in found]

    return Statement("approvals/read_decisions", decode, {"id": job_id})


class Sealed(NamedTuple):
    """The fingerprint of a job now, and whether another person than its submitter must approve.

    `traceparent` is the span that submitted the job, if any.
    """

    seal: str
    two_person: bool
    traceparent: str | None


def sealed(job_id: UUID) -> Statement[Sealed | None]:
    return Statement("approvals/read_seal", maybe_row(Sealed), {"id": job_id})
