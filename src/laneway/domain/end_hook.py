"""End hooks: the ends of jobs that submit a job, and the ended job that its handler gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, get_args
from uuid import UUID

from laneway.domain.job import NAME_BYTES
from laneway.domain.lane import check_job_type
from laneway.domain.suggestion import suggest
from laneway.domain.text import check_text
from laneway.errors import InvalidInput

EndStatus = Literal["completed", "failed", "cancelled"]
END_STATUSES: Final[tuple[EndStatus, ...]] = get_args(EndStatus)
# The job type of a hook is this and the name of its function.
HOOK_PREFIX: Final = "on_end."
# The argument of a hook's handler.
HOOK_ARGUMENT: Final = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndHook:
    """The ends of jobs that submit a job of the type `name`; None: of all."""

    name: str
    job_types: tuple[str, ...] | None = None
    statuses: tuple[str, ...] = END_STATUSES
    workspaces: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for job_type in self.job_types or ():
            check_job_type(job_type)
        if self.name in (self.job_types or ()):
            raise InvalidInput("job_type", f"{self.name} is the hook's own job type")
        if not self.statuses:
            raise InvalidInput("status", f"must name one of {', '.join(END_STATUSES)}")
        for status in self.statuses:
            if status not in END_STATUSES:
                near = suggest(str(status), END_STATUSES)
                rule = f"{status!r} is not an end of a job{near}"
                raise InvalidInput("status", f"{rule}: use {', '.join(END_STATUSES)}")
        for workspace in self.workspaces or ():
            check_text(workspace, "workspace", max_bytes=NAME_BYTES)


def as_names(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """One name or several, each once; None: not given."""
    if given is None:
        return None
    return tuple(dict.fromkeys((given,) if isinstance(given, str) else given))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedError:
    """The error of an ended job; `message` is None unless all readers of the job may see it."""

    # A later version may add fields.
    __pydantic_config__: ClassVar = {"extra": "ignore"}

    type: str
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedJob:
    """A job at its end, as an end hook gets it.

    `omitted` names `payload` or `result` if they are too large to be copied (32 KiB each).
    """

    __pydantic_config__: ClassVar = {"extra": "ignore"}

    id: UUID
    job_type: str
    status: EndStatus
    workspace: str
    attempt: int
    retries: int
    max_retries: int
    priority: int
    created_at: datetime
    finished_at: datetime
    lane: str | None = None
    tags: tuple[str, ...] = ()
    flow: UUID | None = None
    created_by: str | None = None
    started_at: datetime | None = None
    error: EndedError | None = None
    cancel_reason: str | None = None
    cancelled_by: str | None = None
    payload: Any = None
    result: Any = None
    omitted: tuple[str, ...] = ()
