"""What an operator's verb means in the state it met, the same at every door."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from laneway.domain.job import NAME_BYTES
from laneway.domain.states import TERMINAL, Status
from laneway.domain.text import check_text
from laneway.errors import NotFound, Refused

REASON_BYTES: Final = 2000


def check_words(by: str | None, reason: str | None) -> None:
    """Refuses names and reasons that no row should hold."""
    if by is not None:
        check_text(by, "by", max_bytes=2 * NAME_BYTES)
    if reason is not None:
        check_text(reason, "reason", max_bytes=REASON_BYTES)


def met(job_id: UUID, found_in: str | None) -> Status:
    """The state a verb met; NotFound when there was no such job."""
    if found_in is None:
        raise NotFound(f"no job {job_id}")
    return Status(found_in)


def after_cancel(job_id: UUID, found_in: str | None) -> Status:
    """The state after a cancel: running (it was asked to stop) or cancelled; else Refused."""
    found = met(job_id, found_in)
    if found in TERMINAL:
        raise Refused(f"job {job_id} has ended already: it is {found}")
    return Status.RUNNING if found is Status.RUNNING else Status.CANCELLED
