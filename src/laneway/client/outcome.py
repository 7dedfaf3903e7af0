"""The outcome of a job that ended: its result, or the error that `wait` raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from laneway.domain.payload import PayloadLimits
from laneway.domain.payload import decode as read_json
from laneway.domain.redaction import redact
from laneway.domain.states import Status
from laneway.domain.text import escape_text
from laneway.errors import InvalidInput, JobFailed, UnreadableValue


def outcome_of(
    job_id: UUID,
    status: str,
    result: str | None,
    error: str | None,
    decode: Callable[[str], Any] | None,
    limits: PayloadLimits,
) -> Any:
    """The result as JSON, or as `decode` reads its text; JobFailed without one."""
    if status == Status.COMPLETED:
        if decode is None:
            return None if result is None else read_json(result, limits, field="result")
        try:
            return decode("null" if result is None else result)
        except InvalidInput as broken:
            raise UnreadableValue(
                f"job {job_id} completed, but its result does not fit the return hint of its"
                f" handler ({broken}); `lw.wait` returns it as JSON"
            ) from broken
    details = read_json(error, limits, field="error") if error is not None else None
    reason = ""
    if isinstance(details, dict):
        reason = escape_text(redact(f": {details.get('type')}: {details.get('message')}"))
    verb = "was cancelled" if status == Status.CANCELLED else "failed"
    raise JobFailed(f"job {job_id} {verb}{reason}")
