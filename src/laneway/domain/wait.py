"""Waits: what a job in `waiting` waits for, and what its handler is given afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from laneway.domain.annotations import Doc

WaitKind = Literal["jobs", "sub_jobs", "event", "sleep"]
# The longest name of a step or a wait, of an event, and of an event's key.
NAME_BYTES: Final = 200
KEY_BYTES: Final = 512
# Jobs that `WaitsFor` names.
SHOWN_JOBS: Final = 20
# The id of a job that was deleted before its result was read.
NO_JOB: Final = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsFor:
    """The reason why a job is in `waiting`."""

    kind: Annotated[
        WaitKind,
        Doc("`jobs` that it comes after, its `sub_jobs`, an `event`, or a `sleep` of its handler"),
    ]
    name: Annotated[str | None, Doc("The name that its handler gave to the wait")] = None
    since: datetime | None = None
    until: Annotated[datetime | None, Doc("When it continues at the latest")] = None
    missing: Annotated[int | None, Doc("Jobs that have not ended yet")] = None
    jobs: Annotated[tuple[UUID, ...], Doc(f"The first {SHOWN_JOBS} of those jobs")] = ()
    event: Annotated[str | None, Doc("The name of the event")] = None
    key: Annotated[str | None, Doc("The key of the event")] = None

    def is_over(self, now: datetime) -> bool:
        """Whether the time of the wait is over."""
        return self.until is not None and self.until <= now

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> WaitsFor:
        """Read the column `waits_for` of laneway.jobs_view."""
        return cls(
            kind=stored["kind"],
            name=stored.get("name"),
            since=_time(stored.get("since")),
            until=_time(stored.get("until")),
            missing=stored.get("missing"),
            jobs=tuple(UUID(one) for one in stored.get("jobs") or ()),
            event=stored.get("event"),
            key=stored.get("key") or None,
        )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class JobResult:
    """An ended job that a handler came after, or ran as a sub-job."""

    id: UUID
    job_type: str
    # Its name within the flow.
    name: str | None
    # completed, failed or cancelled; deleted if it does not exist any more, then with NO_JOB as id.
    status: str
    # None unless it completed.
    result: Any = None

    @property
    def is_completed(self) -> bool:
        """Whether the job completed, so that `result` is its result."""
        return self.status == "completed"
