"""Lanes, the ranges their settings must keep to, and the names of lanes and job types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final

from laneway.domain.change_rules import Check, check_flag, check_whole, optional, validate_settings
from laneway.domain.text import check_text, is_printable
from laneway.errors import InvalidInput

DEFAULT_LANE: Final = "default"
ANALYSIS_LANE: Final = "analysis"

LANE_NAME_BYTES: Final = 63
JOB_TYPE_BYTES: Final = 128

_LANE_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]*\Z")


@dataclass(frozen=True, slots=True)
class Lane:
    """A named policy over job types: how many run at once, how often to look, when work is stale.

    `max_slots` counts running jobs in the whole cluster: None is unbounded, 0 lets nothing start.
    """

    name: str
    job_types: tuple[str, ...] = ()
    max_slots: int | None = 1
    poll_interval_ms: int = 5000
    stale_timeout_minutes: int = 30
    lease_seconds: int = 30
    enabled: bool = True
    updated_at: datetime | None = None
    updated_by: str | None = None
    # The settings that were given by name; the others are a new lane's defaults.
    named: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Lane:
        """A new lane from untrusted settings; what is not named takes a new lane's defaults."""
        given = validate_lane_change(settings, new=True)
        return cls(**given, named=frozenset(given))  # type: ignore[arg-type]

    def differences(self, other: Lane) -> dict[str, tuple[object, object]]:
        """The settings given here that the other lane has not: name → (here, there)."""
        return {
            name: (here, there)
            for name in SETTINGS
            if (here := getattr(self, name)) != (there := getattr(other, name))
            and (name in self.named or here != getattr(_NEW_LANE, name))
        }

    def to_dict(self) -> dict[str, object]:
        """The lane as JSON values under the contract's names."""
        return {
            "name": self.name,
            "job_types": list(self.job_types),
            "max_slots": self.max_slots,
            "poll_interval_ms": self.poll_interval_ms,
            "stale_timeout_minutes": self.stale_timeout_minutes,
            "lease_seconds": self.lease_seconds,
            "enabled": self.enabled,
            "updated_at": self.updated_at.isoformat() if self.updated_at else None,
            "updated_by": self.updated_by,
        }


# What an operator tunes by value; `enabled` is switched by drain and resume.
SETTINGS: Final = ("max_slots", "poll_interval_ms", "stale_timeout_minutes", "lease_seconds")
_NEW_LANE: Final = Lane("new")

SEEDED_LANES: Final[tuple[Lane, ...]] = (
    Lane(
        "interactive",
        ("ingestion", "ingest_image", "polarity"),
        max_slots=2,
        poll_interval_ms=2000,
        stale_timeout_minutes=30,
    ),
    Lane(
        "maintenance",
        (
            "projection",
            "vocab_refresh",
            "epistemic_remeasurement",
            "ontology_annealing",
            "proposal_execution",
        ),
        max_slots=1,
        poll_interval_ms=15000,
        stale_timeout_minutes=60,
    ),
    Lane(
        "system",
        ("restore", "vocab_consolidate", "artifact_cleanup", "source_embedding"),
        max_slots=1,
        poll_interval_ms=30000,
        stale_timeout_minutes=120,
    ),
    Lane(ANALYSIS_LANE, (), max_slots=4, poll_interval_ms=1000, stale_timeout_minutes=30),
    Lane(DEFAULT_LANE, (), max_slots=None, poll_interval_ms=1000, stale_timeout_minutes=30),
)


def check_lane_name(value: object, field: str = "name") -> str:
    """A lane's name: 1 to 63 bytes, a lower-case letter, then a-z 0-9 _ . -"""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be text, not {type(value).__name__}")
    if len(value) > LANE_NAME_BYTES or not _LANE_NAME.match(value):
        raise InvalidInput(
            field,
            f"must be 1 to {LANE_NAME_BYTES} characters: a lower-case letter, "
            "then a-z, 0-9, '_', '.' or '-'",
        )
    return value


def check_job_type(value: object, field: str = "job_type") -> str:
    """A job type's name: 1 to 128 bytes of printable text, no space at either end."""
    name = check_text(value, field, max_bytes=JOB_TYPE_BYTES)
    if not is_printable(name):
        raise InvalidInput(field, "must be printable text without control characters")
    if name != name.strip():
        raise InvalidInput(field, "must not begin or end with a space")
    return name


def validate_lane_change(change: Mapping[str, object], *, new: bool = False) -> dict[str, object]:
    """The settings of a lane that a change names, checked; InvalidInput names field and rule.

    A change of an existing lane may not carry `name`; a new lane (`new=True`) must.
    `updated_at` and `updated_by` are never taken from outside.
    """
    required = ("name",) if new else ()
    return validate_settings("lane", change, _CHECKS, _FIELDS, required=required)


def _job_types(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(field, "must be a list of job types")
    names = tuple(check_job_type(name, f"{field}[{i}]") for i, name in enumerate(value))
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidInput(f"{field}[{i}]", "names a job type a second time")
    return names


_CHECKS: Final[dict[str, Check]] = {
    "name": lambda field, value: check_lane_name(value, field),
    "job_types": _job_types,
    "max_slots": optional(check_whole(0, 10000)),
    "poll_interval_ms": check_whole(100, 120_000),
    "stale_timeout_minutes": check_whole(1, 1440),
    "lease_seconds": check_whole(2, 3600),
    "enabled": check_flag,
}

_FIELDS: Final = frozenset(each.name for each in fields(Lane)) - {"named"}
