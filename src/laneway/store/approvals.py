"""Decisions about jobs that wait for one, as statements."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from laneway.domain.approval import Decision
from laneway.domain.redaction import redact
from laneway.store.statement import Row, Statement


class Decided(NamedTuple):
    """The state a decision met (None: no such job), and why it was not taken where it was not."""

    found_in: str | None
    refusal: str | None = None
    job_type: str | None = None
    workspace: str | None = None

    @property
    def is_taken(self) -> bool:
        return self.found_in == "awaiting_approval" and self.refusal is None


def _decided(rows: list[Row]) -> Decided:
    return Decided(*rows[0]) if rows else Decided(None)


def approve(job_id: UUID, by: str, comment: str | None, seal: str | None) -> Statement[Decided]:
    """Lets a job run; with a seal, only if it is still what the approver was shown."""
    return _decide(job_id, by, comment, seal, is_yes=True)


def reject(job_id: UUID, by: str, reason: str) -> Statement[Decided]:
    """Cancels a job that waits for an approval."""
    return _decide(job_id, by, reason, None, is_yes=False)


def _decide(
    job_id: UUID, by: str, comment: str | None, seal: str | None, *, is_yes: bool
) -> Statement[Decided]:
    said = comment and redact(comment)
    return Statement(
        "approvals/decide_job",
        _decided,
        {"id": job_id, "approve": is_yes, "by": by, "comment": said, "seal": seal},
    )


def decisions(job_id: UUID) -> Statement[list[Decision]]:
    """Every decision about a job, oldest first."""

    def decode(rows: list[Row]) -> list[Decision]:
        # A comment that SQL has written was not redacted.
        found = [Decision(*row) for row in rows]
        return [replace(one, comment=one.comment and redact(one.comment)) for one in found]

    return Statement("approvals/read_decisions", decode, {"id": job_id})


class Sealed(NamedTuple):
    """The fingerprint of a job as it is now, and whether its submitter may not approve it.

    `traceparent` is the span that submitted it, where one did.
    """

    seal: str
    two_person: bool
    traceparent: str | None


def sealed(job_id: UUID) -> Statement[Sealed | None]:
    return Statement(
        "approvals/read_seal", lambda rows: Sealed(*rows[0]) if rows else None, {"id": job_id}
    )
