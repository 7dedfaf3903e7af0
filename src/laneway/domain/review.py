"""A job as approvers see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple
from uuid import UUID

from laneway.domain.annotations import INLINE, Doc
from laneway.domain.approval import Decision
from laneway.domain.flow import AfterFailure
from laneway.domain.job import Attempts, Job, shown
from laneway.domain.wait import WaitKind


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step of a job; later attempts reuse its result."""

    name: str
    attempt: Annotated[int, Doc("The attempt that ran it")]
    took_s: float | None
    at: Annotated[datetime, Doc("When its result was stored")]


@dataclass(frozen=True, slots=True)
class HandlerWait:
    """A wait that the handler of a job asked for, open or over."""

    name: str
    kind: WaitKind
    asked_at: datetime
    until: Annotated[datetime | None, Doc("The end of a sleep, or the timeout of an event")]
    ended_at: Annotated[datetime | None, Doc("Null while it is open")]
    jobs: Annotated[int | None, Doc("The number of sub_jobs")]
    event: Annotated[str | None, Doc("The name of the event")]
    key: Annotated[str | None, Doc("The key of the event")]
    event_id: Annotated[
        int | None, Doc("The event that it took; null once it has ended: none came in time")
    ]
    sent_by: Annotated[str | None, Doc("The sender of that event, if it gave its name")]
    sent_at: Annotated[datetime | None, Doc("When that event was sent")] = None


class JobEdges(NamedTuple):
    """The jobs around one job: those it comes after, its owner, and those that come after it."""

    after: tuple[UUID, ...] = ()
    after_failure: AfterFailure | None = None
    owner: UUID | None = None
    followers: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """A job with its attempts and decisions."""

    computed_after: ClassVar = {"job": "attempts"}
    schema_name: ClassVar = "JobDetail"

    job: Annotated[Job, INLINE]
    seal: Annotated[str, Doc("Identifies this version: approve with it to approve only this")]
    two_person: Annotated[bool, Doc("Its submitter may not approve it")]
    decisions: tuple[Decision, ...]
    traceparent: Annotated[
        str | None, Doc("The span that submitted it (W3C Trace Context), to find its trace")
    ] = None
    steps: Annotated[tuple[Step, ...], Doc("The newest 200 finished steps, in order")] = ()
    waits: Annotated[
        tuple[HandlerWait, ...], Doc("The newest 200 waits of its handler, in order")
    ] = ()
    after: Annotated[tuple[UUID, ...], Doc("The first 100 jobs that it comes after")] = ()
    after_failure: Annotated[
        AfterFailure | None, Doc("If one of these fails: cancel, run or hold; null without any")
    ] = None
    owner: Annotated[UUID | None, Doc("The job whose handler runs it as a sub-job")] = None
    followers: Annotated[
        tuple[UUID, ...],
        Doc(
            "The first 100 jobs that come after it: all that still wait for it, and others among"
            " the next 10,000 of its flow"
        ),
    ] = ()

    @property
    def attempts(self) -> Attempts:
        return self.job.attempts

    def public(self) -> Review:
        """The review with the public parts of errors only."""
        return replace(self, job=self.job.public())

    def to_dict(self, *, debug: bool = True) -> dict[str, Any]:
        """The job with the rest as JSON values; `debug=False` leaves out private ones."""
        return shown(self, debug=debug)
