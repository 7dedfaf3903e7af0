"""Job types as workers publish them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedType:
    """What everybody knows of a job type; without `is_known`, no worker that lives can run it.

    `lane` is the one in force. `arguments` is a JSON Schema, None where any payload is taken.
    `approval` is never, always or below: then a job whose analysis says no more than
    `approval_below`, in `approval_unit`, needs no decision.
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
