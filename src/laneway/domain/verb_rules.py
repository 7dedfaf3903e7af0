"""What an operator's verb means in the state it met, the same at every door."""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

from laneway.domain.job import NAME_BYTES
from laneway.domain.redaction import redact
from laneway.domain.states import TERMINAL, Status
from laneway.domain.text import check_name, check_text
from laneway.errors import InvalidInput, NotFound, Refused

REASON_BYTES: Final = 2000
LONGEST_PAGE: Final = 200
# A cancel that is meant for jobs that wait, or for those that run.
CancelOnly = Literal["waiting", "running"]


def check_words(by: str | None, reason: str | None) -> None:
    """Refuses names and reasons that no row should hold."""
    if by is not None:
        check_name(by, "by", max_bytes=2 * NAME_BYTES)
    if reason is not None:
        check_text(reason, "reason", max_bytes=REASON_BYTES)


def check_page(limit: object) -> None:
    """Refuses a page of no or too many rows."""
    if type(limit) is not int or not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput("limit", f"must be a whole number from 1 to {LONGEST_PAGE}")


def position(cursor: str | None) -> int | None:
    """The id a page ends before; None: the page starts at the newest."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 19):
        raise InvalidInput("cursor", "must be the next_cursor of a page")
    return min(int(cursor), 2**63 - 1)


def met(job_id: UUID, found_in: str | None) -> Status:
    """The state a verb met; NotFound when there was no such job."""
    if found_in is None:
        raise NotFound(f"no job {job_id}")
    return Status(found_in)


def after_cancel(
    job_id: UUID, found_in: str | None, asked: object = None, only: CancelOnly | None = None
) -> Status:
    """The state after a cancel: cancelled, or what it was while its worker (`asked`) stops it.

    Refused when it had ended before, was not what the cancel was `only` for, or is in the hands of
    an open transaction.
    """
    if found_in == "busy":
        raise Refused(f"job {job_id} may be about to end, in a transaction still open: try again")
    found = met(job_id, found_in)
    if only == "running" and found is not Status.RUNNING:
        raise Refused(f"job {job_id} is {found}: only running jobs are cancelled here")
    if only == "waiting" and found is Status.RUNNING:
        raise Refused(f"job {job_id} is running: cancel it first")
    if found in TERMINAL:
        raise Refused(f"job {job_id} has ended already: it is {found}")
    return Status.CANCELLED if asked is None else found


def check_decision(by: object, comment: object) -> None:
    """Refuses a decision of nobody, and a comment that no row should hold."""
    check_name(by, "by", max_bytes=2 * NAME_BYTES)
    if comment is not None:
        check_text(comment, "comment", max_bytes=REASON_BYTES)


def check_rejection(by: object, reason: object) -> None:
    """Refuses a rejection of nobody, or without a reason."""
    check_name(by, "by", max_bytes=2 * NAME_BYTES)
    check_text(reason, "reason", max_bytes=REASON_BYTES)


REFUSALS: Final = {
    "two_person": "needs the approval of another person than its submitter, "
    "or than who wrote its schedule",
    "changed": "is no longer what you were shown: look at it again",
}


def after_decision(job_id: UUID, found_in: str | None, refusal: str | None, verb: str) -> None:
    """Returns when the decision was taken; NotFound or Refused says why it was not."""
    found = met(job_id, found_in)
    if found is not Status.AWAITING_APPROVAL:
        raise Refused(f"job {job_id} is {found}: {verb} takes jobs that await an approval")
    if refusal is not None:
        raise Refused(f"job {job_id} {REFUSALS[refusal]}")


State = dict[str, object]


def cancelled(found_in: str | None, status: Status, reason: str | None) -> tuple[State, State]:
    """Before and after a cancel, as the audit tells it."""
    after: State = {"status": status.value, "reason": reason and redact(reason)}
    if status is not Status.CANCELLED:
        after["cancel_requested"] = True
    return {"status": found_in}, after


def decided(status: Status, comment: str | None) -> tuple[State, State]:
    """Before and after a decision, as the audit tells it."""
    return {"status": Status.AWAITING_APPROVAL.value}, {
        "status": status.value,
        "comment": comment and redact(comment),
    }
