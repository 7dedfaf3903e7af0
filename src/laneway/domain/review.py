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


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step of a job; later attempts reuse its result."""

    name: str
    attempt: Annotated[int, Doc("The attempt that ran it")]
    took_s: float | None
    at: Annotated[datetime, Doc("When its result was stored")]


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
