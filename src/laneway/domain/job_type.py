"""Job types as workers publish them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from shlex import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedType:
    """A job type as published; unless `is_known`, no live worker can run it.

    `lane` is the lane in force. `arguments` is a JSON Schema; None: any payload is accepted.
    `approval` is never, always or below. With below, a job whose analysis estimates at most
    `approval_below` in `approval_unit` needs no decision.
    """

    name: str
    lane: str
    arguments: Mapping[str, object] | None
    priority: int
    max_retries: int
    timeout_s: float | None
    isolation: str
    stale: str
    limits: tuple[str, ...]
    has_analysis: bool
    approval: str
    approval_below: float | None
    approval_unit: str | None
    two_person: bool
    approval_expires_s: float
    max_age_s: float | None
    published_at: datetime
    is_known: bool

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "published_at": self.published_at.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """An application that publishes a job type, and when it was last seen.

    `is_stale`: it was not seen for days, and only its approval policy still binds others.
    """

    job_type: str
    application: str
    first_at: datetime
    published_at: datetime
    seen_at: datetime
    is_stale: bool

    def to_dict(self) -> dict[str, object]:
        at = ("first_at", "published_at", "seen_at")
        return {**asdict(self), **{name: getattr(self, name).isoformat() for name in at}}

    def __str__(self) -> str:
        seen = f"{self.seen_at:%Y-%m-%d}"
        return f"job type {self.job_type}: {self.application} was last seen on {seen}"


def forget_command(application: str, job_type: str) -> str:
    """The command that removes an application as publisher of a job type."""
    return f"laneway admin workers forget-publisher {quote(application)} --type {quote(job_type)}"
