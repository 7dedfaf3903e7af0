"""A job as somebody sees it who decides about it."""

from __future__ import annotations

from dataclasses import dataclass

from laneway.domain.approval import Decision
from laneway.domain.job import Job


@dataclass(frozen=True, slots=True)
class Review:
    """A job with all that was decided about it, and the seal to approve it by as it is shown.

    `traceparent` (W3C Trace Context) is the span that submitted it, where one did.
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
