"""The reasons why a job is not running."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from laneway.domain.job import Job
from laneway.domain.states import Status


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason; `code` is stable, `message` is for people."""

    code: str
    message: str

    def to_dict(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A job and the reasons for its state, the most decisive first.

    `runs_for_s` is how long jobs of its type ran recently; None if none did. `label` is the
    status for people; servers of older versions do not send it.
    """

    id: UUID
    job_type: str
    lane: str
    status: Status
    reasons: list[Reason]
    starts_in_s: float | None = None
    runs_for_s: float | None = None
    label: str | None = None

    @classmethod
    def of(
        cls,
        job: Job,
        reasons: list[Reason],
        starts_in_s: float | None = None,
        runs_for_s: float | None = None,
    ) -> Explanation:
        return cls(
            *(job.id, job.job_type, job.lane, job.status, reasons, starts_in_s, runs_for_s),
            label=job.label,
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "id": str(self.id),
            "job_type": self.job_type,
            "lane": self.lane,
            "status": self.status.value,
            "label": self.label,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "starts_in_s": self.starts_in_s,
            "runs_for_s": self.runs_for_s,
        }
