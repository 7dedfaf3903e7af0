"""Lanes, the ranges of their settings, and the names of lanes and job types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, Final, TypedDict

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain.annotations import HIDDEN, CheckedBy, Doc, NullWord, Pattern
from laneway.domain.change import Change
from laneway.domain.change_rules import checks_of, validate_settings
from laneway.domain.text import check_text, is_printable
from laneway.errors import InvalidInput

DEFAULT_LANE: Final = "default"
ANALYSIS_LANE: Final = "analysis"

LANE_NAME_BYTES: Final = 63
JOB_TYPE_BYTES: Final = 128

_NAME: Final = "[a-z][a-z0-9_.-]*"
_LANE_NAME: Final = re.compile(rf"{_NAME}\Z")


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


def _check_job_types(value: object, field: str = "job_types") -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(field, "must be a list of job types")
    names = tuple(check_job_type(name, f"{field}[{i}]") for i, name in enumerate(value))
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidInput(f"{field}[{i}]", "names a job type a second time")
    return names


# The rules of each field, stated here alone.
LaneName = Annotated[
    str, MaxLen(LANE_NAME_BYTES), Pattern(f"^{_NAME}$"), CheckedBy(check_lane_name)
]
JobType = Annotated[str, MinLen(1), MaxLen(JOB_TYPE_BYTES), CheckedBy(check_job_type)]
JobTypes = Annotated[
    list[JobType],
    MaxLen(10_000),
    CheckedBy(_check_job_types),
    Doc("All job types of the lane; no other lane may have them"),
]
MaxSlots = Annotated[
    int | None,
    Interval(ge=0, le=10_000),
    Doc("Most running jobs in the whole cluster; 0: none starts"),
    NullWord("unbounded"),
]
PollIntervalMs = Annotated[
    int, Interval(ge=100, le=120_000), Doc("Time between two polls of an idle worker")
]
StaleTimeoutMinutes = Annotated[
    int,
    Interval(ge=1, le=1440),
    Doc("Longest time without progress, for handlers with stale=progress"),
]
LeaseSeconds = Annotated[
    int, Interval(ge=2, le=3600), Doc("Time until a lease without a heartbeat lapses")
]
Enabled = Annotated[bool, Doc("false drains the lane: running jobs finish, no more are claimed")]


class LaneSettings(TypedDict, total=False):
    """The settings of a lane, as a change names some of them."""

    job_types: JobTypes
    max_slots: MaxSlots
    poll_interval_ms: PollIntervalMs
    stale_timeout_minutes: StaleTimeoutMinutes
    lease_seconds: LeaseSeconds
    enabled: Enabled


@dataclass(frozen=True, slots=True)
class Lane:
    """A named policy over job types: running jobs at once, poll interval, staleness, lease.

    `max_slots` counts running jobs in the whole cluster: None is unbounded, 0 lets nothing start.
    """

    name: str
    job_types: tuple[str, ...] = ()
    max_slots: MaxSlots = 1
    poll_interval_ms: PollIntervalMs = 5000
    stale_timeout_minutes: StaleTimeoutMinutes = 30
    lease_seconds: LeaseSeconds = 30
    enabled: Enabled = True
    updated_at: datetime | None = None
    updated_by: str | None = None
    # The settings that were given by name; the others are a new lane's defaults.
    named: Annotated[frozenset[str], HIDDEN] = field(default=frozenset(), compare=False, repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Lane:
        """A new lane from untrusted settings; settings that are not given take their defaults."""
        given: dict[str, Any] = validate_lane_change(settings, new=True)
        return cls(**given, named=frozenset(given))

    def differences(self, other: Lane) -> dict[str, tuple[object, object]]:
        """The given settings that differ from the other lane: name → (here, there)."""
        return {
            name: (here, there)
            for name in SETTINGS
            if (here := getattr(self, name)) != (there := getattr(other, name))
            and (name in self.named or here != getattr(_NEW_LANE, name))
        }


@dataclass(frozen=True, slots=True)
class TunedLane(Lane):
    """A lane after a change of its settings, and that change."""

    change: Annotated[Change | None, Doc("null: unchanged")] = None

    @classmethod
    def after(cls, change: Change | None, lane: Lane) -> TunedLane:
        return cls(**{each.name: getattr(lane, each.name) for each in fields(lane)}, change=change)


# The settings that operators change by value; drain and resume switch `enabled`.
SETTINGS: Final = tuple(
    name for name in LaneSettings.__annotations__ if name not in ("job_types", "enabled")
)
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


def validate_lane_change(change: Mapping[str, object], *, new: bool = False) -> dict[str, object]:
    """The settings of a lane that a change names, checked; InvalidInput names field and rule.

    A change of an existing lane may not carry `name`; a new lane (`new=True`) must.
    `updated_at` and `updated_by` are never taken from outside.
    """
    required = ("name",) if new else ()
    return validate_settings("lane", change, _CHECKS, _FIELDS, required=required)


_CHECKS: Final = {
    "name": lambda field, value: check_lane_name(value, field),
    **checks_of(LaneSettings),
}
_FIELDS: Final = frozenset(each.name for each in fields(Lane)) - {"named"}
