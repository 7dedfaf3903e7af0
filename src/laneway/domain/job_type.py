"""Job types as workers publish them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Annotated, Literal

from laneway.domain.annotations import Doc


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedType:
    """A job type as published by the newest worker that has it.

    With `approval` below, a job whose analysis estimates at most `approval_below` in
    `approval_unit` needs no decision.
    """

    name: str
    lane: Annotated[str, Doc("Its current lane")]
    arguments: Annotated[
        Mapping[str, object] | None,
        Doc("JSON Schema of the payload; null: any payload is accepted"),
    ]
    priority: Annotated[int, Doc("The default of its jobs")]
    max_retries: Annotated[int, Doc("The default of its jobs")]
    timeout_s: float | None
    isolation: Literal["async", "thread", "process"]
    stale: Literal["heartbeat", "progress"]
    limits: Annotated[tuple[str, ...], Doc("Held for the whole run")]
    has_analysis: bool
    approval: Literal["never", "always", "below"]
    approval_below: Annotated[float | None, Doc("Up to this cost, no approval is needed")]
    approval_unit: str | None
    two_person: Annotated[bool, Doc("The submitter may not approve")]
    approval_expires_s: float
    max_age_s: float | None
    unique_for_s: Annotated[float | None, Doc("At most one job in so many seconds")]
    unique_by: Annotated[
        tuple[str, ...] | None, Doc("The arguments that form the unique key; null: all")
    ]
    keep_completed_s: Annotated[float | None, Doc("Retention of completed jobs; null: forever")]
    keep_cancelled_s: Annotated[float | None, Doc("Retention of cancelled jobs; null: forever")]
    keep_failed_s: Annotated[float | None, Doc("Retention of failed jobs; null: forever")]
    keep_count: Annotated[int | None, Doc("Ended jobs that are kept at most; null: any number")]
    published_at: datetime
    is_known: Annotated[bool, Doc("false: no live worker can run it")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """An application that publishes a job type. The strictest of their policies applies."""

    job_type: str
    application: Annotated[str, Doc("`LANEWAY_APPLICATION`, or the module of its handler")]
    first_at: datetime
    published_at: Annotated[datetime, Doc("When its policy last changed")]
    seen_at: Annotated[datetime, Doc("When one of its workers last had the type")]
    is_stale: Annotated[
        bool, Doc("Not seen for 45 days while another has it: only its approval policy applies")
    ]

    def __str__(self) -> str:
        seen = f"{self.seen_at:%Y-%m-%d}"
        return f"job type {self.job_type}: {self.application} was last seen on {seen}"


def forget_command(application: str, job_type: str) -> str:
    """The command that removes an application as publisher of a job type."""
    return f"laneway admin workers forget-publisher {quote(application)} --type {quote(job_type)}"
