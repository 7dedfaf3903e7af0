"""The reasons why a job is not running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from laneway.domain.annotations import ALWAYS_SENT, Doc
from laneway.domain.codec import to_json
from laneway.domain.job import Job
from laneway.domain.states import Status


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for the state of a job; `message` is for people."""

    code: Annotated[str, Doc("Stable: programs may rely on it")]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The state of a job and the reasons for it, the most decisive first.

    Servers of older versions do not send `label`.
    """

    id: UUID
    job_type: str
    lane: str
    status: Status
    label: Annotated[str | None, Doc("The status for people, as in a job"), ALWAYS_SENT] = None
    reasons: list[Reason]
    starts_in_s: Annotated[float | None, Doc("An estimate; null: unknown")] = None
    runs_for_s: Annotated[float | None, Doc("The recent run time of jobs of its type")] = None

    @classmethod
    def of(
        cls,
        job: Job,
        reasons: list[Reason],
        starts_in_s: float | None = None,
        runs_for_s: float | None = None,
    ) -> Explanation:
        same = {name: getattr(job, name) for name in ("id", "job_type", "lane", "status", "label")}
        return cls(**same, reasons=reasons, starts_in_s=starts_in_s, runs_for_s=runs_for_s)

    def to_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = to_json(self)
        return shown
