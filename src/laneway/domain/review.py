"""A job as approvers see it."""

from __future__ import annotations

from dataclasses import dataclass

from laneway.domain.approval import Decision
from laneway.domain.job import Job


@dataclass(frozen=True, slots=True)
class Review:
    """A job with its decisions, and the seal by which to approve exactly what is shown.

    `traceparent` (W3C Trace Context) is the span that submitted it, if any.
    """

    job: Job
    seal: str
    two_person: bool
    decisions: tuple[Decision, ...]
    traceparent: str | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            **self.job.to_dict(),
            "seal": self.seal,
            "two_person": self.two_person,
            "decisions": [one.to_dict() for one in self.decisions],
            "traceparent": self.traceparent,
        }
