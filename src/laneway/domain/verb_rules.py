"""Rules of operators' verbs by the state of the job, the same in every interface."""

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
# The reason why an ended job is not deleted.
NEEDED: Final = "is part of a running flow, or a job that has not ended may read its result"
# A cancel only for waiting, or only for running jobs.
CancelOnly = Literal["waiting", "running"]


def check_actor(by: str | None, reason: str | None = None) -> None:
    """Refuse an actor name or a reason that must not be stored."""
    if by is not None:
        check_name(by, "by", max_bytes=2 * NAME_BYTES)
    if reason is not None:
        check_text(reason, "reason", max_bytes=REASON_BYTES)


def check_page(limit: object, most: int = LONGEST_PAGE) -> None:
    """Refuse a page of no or too many rows."""
    if type(limit) is not int or not 1 <= limit <= most:
        raise InvalidInput("limit", f"must be a whole number from 1 to {most}")


def position(cursor: str | None) -> int | None:
    """The id before which a page begins; None: it begins with the newest."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 19):
        raise InvalidInput("cursor", "must be the next_cursor of a page")
    return min(int(cursor), 2**63 - 1)


def uuid_position(cursor: str | None) -> UUID | None:
    """The id after which a page begins; None: it begins with the oldest."""
    try:
        return None if cursor is None else UUID(cursor)
    except ValueError:
        raise InvalidInput("cursor", "must be the next_cursor of a page") from None


def found_status(job_id: UUID, found_in: str | None) -> Status:
    """The status that a verb found; NotFound if the job does not exist."""
    if found_in is None:
        raise NotFound(f"no job {job_id}")
    return Status(found_in)


def after_cancel(
    job_id: UUID, found_in: str | None, asked: object = None, only: CancelOnly | None = None
) -> Status:
    """The status after a cancel: cancelled, or unchanged while its worker (`asked`) stops it.

    Refused if the job had ended, if the cancel is `only` for other jobs, or if an open transaction
    may end the job.
    """
    if found_in == "busy":
        raise Refused(f"job {job_id} may be about to end in an open transaction: try again")
    found = found_status(job_id, found_in)
    if only == "running" and found is not Status.RUNNING:
        raise Refused(f"job {job_id} is {found}: only running jobs are cancelled here")
    if only == "waiting" and found is Status.RUNNING:
        raise Refused(f"job {job_id} is running: cancel it first")
    if found in TERMINAL:
        raise Refused(f"job {job_id} has already ended: it is {found}")
    return Status.CANCELLED if asked is None else found


_INSTEAD: Final = {
    Status.AWAITING_APPROVAL: "approve it first",
    Status.WAITING: "it waits for jobs or an event, which explain names",
    Status.FAILED: "retry it instead",
    Status.CANCELLED: "retry it instead",
}
_CAN_RUN_NOW: Final = "only jobs that are delayed, snoozed, asleep or wait for a retry can run now"


def check_made_due(job_id: UUID, found_in: str | None, *, is_done: bool) -> None:
    """Return if `run_now` made the job due; else raise NotFound or Refused."""
    if is_done:
        return
    if found_in == "due":
        raise Refused(f"job {job_id} is due already: explain says what it waits for")
    found = found_status(job_id, found_in)
    hint = _INSTEAD.get(found, _CAN_RUN_NOW)
    raise Refused(f"job {job_id} is {found}: {hint}")


def check_decision(by: object, comment: object) -> None:
    """Refuse a decision without an author, and a comment that must not be stored."""
    check_name(by, "by", max_bytes=2 * NAME_BYTES)
    if comment is not None:
        check_text(comment, "comment", max_bytes=REASON_BYTES)


def check_rejection(by: object, reason: object) -> None:
    """Refuse a rejection without an author or a reason."""
    check_name(by, "by", max_bytes=2 * NAME_BYTES)
    check_text(reason, "reason", max_bytes=REASON_BYTES)


REFUSALS: Final = {
    "two_person": "needs another person: its submitter, and the author of its schedule, "
    "cannot approve it",
    "changed": "has changed since it was shown to you: look at it again",
}


def after_decision(job_id: UUID, found_in: str | None, refusal: str | None, verb: str) -> None:
    """Return if the decision was accepted; else raise NotFound or Refused."""
    found = found_status(job_id, found_in)
    if found is not Status.AWAITING_APPROVAL:
        raise Refused(f"job {job_id} is {found}: {verb} takes jobs that wait for an approval")
    if refusal is not None:
        raise Refused(f"job {job_id} {REFUSALS[refusal]}")


State = dict[str, object]


def audited_cancel(found_in: str | None, status: Status, reason: str | None) -> tuple[State, State]:
    """The audited states before and after a cancel."""
    after: State = {"status": status.value, "reason": reason and redact(reason)}
    if status is not Status.CANCELLED:
        after["cancel_requested"] = True
    return {"status": found_in}, after


def audited_decision(status: Status, comment: str | None) -> tuple[State, State]:
    """The audited states before and after a decision."""
    return {"status": Status.AWAITING_APPROVAL.value}, {
        "status": status.value,
        "comment": comment and redact(comment),
    }
