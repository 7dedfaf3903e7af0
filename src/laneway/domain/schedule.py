"""Schedules: settings, slots, and the rules for missed slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypedDict
from uuid import UUID

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain import cron as cron_
from laneway.domain.annotations import CheckedBy, Doc, NullWord
from laneway.domain.change_rules import Check, checks_of, optional, validate_settings
from laneway.domain.cron import CRON_BYTES, ZONE_BYTES, Timing, check_cron, check_timezone
from laneway.domain.cron_words import words
from laneway.domain.job import (
    DEFAULT_WORKSPACE,
    MAX_RETRIES_RANGE,
    MAX_TAGS,
    NAME_BYTES,
    PRIORITY_RANGE,
    TAG_BYTES,
    NewJob,
)
from laneway.domain.lane import JobType, LaneName, check_lane_name
from laneway.domain.next_runs import FIRES, Fire, fire_at, fires_after
from laneway.domain.payload import DEFAULT_LIMITS, JsonText, PayloadLimits, check_key, encode
from laneway.domain.stored_json import StoredJson
from laneway.domain.text import check_text
from laneway.errors import InvalidInput

GRACE: Final = timedelta(seconds=60)
CHECK_NAME_BYTES: Final = 128
# Slots that one transaction records.
BATCH: Final = 100


def check_schedule_name(value: object, field: str = "name") -> str:
    """A schedule's name: 1 to 63 bytes, a lower-case letter, then a-z 0-9 _ . -"""
    return check_lane_name(value, field)


def check_check_name(value: object, field: str = "check_name") -> str:
    """The name of a check that workers have."""
    return check_text(value, field, max_bytes=CHECK_NAME_BYTES)


def encode_payload(payload: object, limits: PayloadLimits = DEFAULT_LIMITS) -> str:
    """The payload of a schedule's jobs as JSON; JSON text was checked before."""
    if isinstance(payload, JsonText):
        return str(payload)
    if isinstance(payload, StoredJson):
        return payload.text.decode()
    return encode({} if payload is None else payload, limits=limits)


def _check_payload(value: object, field: str, limits: PayloadLimits = DEFAULT_LIMITS) -> object:
    if not encode_payload(value, limits).lstrip().startswith("{"):
        raise InvalidInput(field, "must be an object")
    return {} if value is None else value


def _check_job_field(value: object, field: str) -> object:
    """A field that a submit has too, by the same rule."""
    if field == "tags":
        if not isinstance(value, (list, tuple)):
            raise InvalidInput(field, "must be a list of texts")
        value = tuple(value)
    NewJob(id=UUID(int=0), job_type="x", **{field: value}).check()  # type: ignore[arg-type]
    return value


# The rules of each field, stated here alone.
ScheduleName = LaneName
SubmittedType = Annotated[JobType, Doc("The job type it submits")]
Cron = Annotated[
    str,
    MinLen(1),
    MaxLen(CRON_BYTES),
    CheckedBy(check_cron),
    Doc("Five fields, six with seconds, or @daily"),
]
JobPayload = Annotated[
    dict[str, Any], CheckedBy(_check_payload), Doc("The payload of every job it submits")
]
Timezone = Annotated[
    str,
    MinLen(1),
    MaxLen(ZONE_BYTES),
    CheckedBy(check_timezone),
    Doc("Time zone: UTC, Europe/Berlin, …"),
]
Missed = Annotated[
    Literal["skip", "coalesce", "catch_up"], Doc("How to handle slots that were missed")
]
CatchUp = Annotated[int, Interval(ge=1, le=1000), Doc("Catch up at most so many slots")]
CheckName = Annotated[
    str | None,
    MinLen(1),
    MaxLen(CHECK_NAME_BYTES),
    CheckedBy(check_check_name),
    Doc("Submit only if this check of the workers' code passes"),
    NullWord("none"),
]
JobPriority = Annotated[
    int | None,
    Interval(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1]),
    Doc("Priority of its jobs"),
    NullWord("none", "the job type's default"),
]
JobRetries = Annotated[
    int | None,
    Interval(ge=MAX_RETRIES_RANGE[0], le=MAX_RETRIES_RANGE[1]),
    Doc("Retries of its jobs"),
    NullWord("none", "the job type's default"),
]
ConcurrencyKey = Annotated[
    str | None,
    MinLen(1),
    MaxLen(DEFAULT_LIMITS.key_bytes),
    CheckedBy(check_key),
    Doc("One of its jobs runs at a time per key"),
    NullWord("none"),
]
Workspace = Annotated[
    str, MinLen(1), MaxLen(NAME_BYTES), CheckedBy(_check_job_field), Doc("Workspace of its jobs")
]
Tags = Annotated[
    list[Annotated[str, MaxLen(TAG_BYTES)]],
    MaxLen(MAX_TAGS),
    CheckedBy(_check_job_field),
    Doc("All tags of its jobs"),
]
Enabled = Annotated[bool, Doc("false stops it; slots until it is enabled do not count as missed")]


class ScheduleSettings(TypedDict, total=False):
    """The settings of a schedule, as a change names some of them."""

    job_type: SubmittedType
    cron: Cron
    payload: JobPayload
    timezone: Timezone
    missed: Missed
    catch_up: CatchUp
    check_name: CheckName
    priority: JobPriority
    max_retries: JobRetries
    concurrency_key: ConcurrencyKey
    workspace: Workspace
    tags: Tags
    enabled: Enabled


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of a schedule and its outcome."""

    slot: datetime
    manual: bool
    outcome: str
    job_id: UUID | None
    note: str | None
    at: datetime
    job_ended: Annotated[
        Literal["completed", "failed", "cancelled"] | None,
        Doc("How its job ended; null: it has none, has not ended or was deleted"),
    ] = None


@dataclass(frozen=True, slots=True)
class RunNow:
    """The outcome of running a schedule now."""

    answer: Annotated[
        Literal["submitted", "asked"], Doc("asked: a worker runs its check, then submits")
    ]
    slot: datetime
    job_id: UUID | None
    job_type: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A cron rule that submits jobs, with its state and its newest slot."""

    computed: ClassVar = ("words", "next_fires")

    name: str
    job_type: str
    payload: Annotated[Any, Doc("The payload of every job it submits")] = field(
        default_factory=dict
    )
    cron: str
    timezone: str = "UTC"
    missed: Missed = "coalesce"
    catch_up: int = 10
    check_name: str | None = None
    priority: int | None = None
    max_retries: int | None = None
    concurrency_key: str | None = None
    workspace: str = DEFAULT_WORKSPACE
    tags: tuple[str, ...] = ()
    enabled: bool = True
    error: Annotated[str | None, Doc("The error that stopped it")] = None
    next_at: datetime | None = None
    check_failures: int = 0
    last: Slot | None = None
    recent: Annotated[
        tuple[Slot, ...], Doc("The newest ten slots and their outcomes, newest first")
    ] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    updated_by: str | None = None
    as_of: Annotated[datetime | None, Doc("The database's clock when this was read")] = field(
        default=None, compare=False
    )

    @property
    def words(
        self,
    ) -> Annotated[
        str, Doc("The cron expression in words, or unchanged if no short description fits")
    ]:
        return words(self.cron, self.timezone)

    @property
    def next_fires(
        self,
    ) -> Annotated[tuple[Fire, ...], Doc("The next three slots; empty while it is stopped")]:
        if not self.enabled or self.next_at is None:
            return ()
        try:
            timing = cron_.parse(self.cron, self.timezone)
        except InvalidInput:
            # Written without the checks: the scheduler will disable it.
            return ()
        now = self.next_at if self.as_of is None else self.as_of
        if now <= self.next_at:
            return (fire_at(timing, self.next_at), *fires_after(timing, self.next_at, FIRES - 1))
        if self.missed == "skip" and now - self.next_at > GRACE:
            return fires_after(timing, now)
        # Due: it fires as soon as a worker is live, for all slots due by then.
        return (fire_at(timing, self.next_at), *fires_after(timing, now, FIRES - 1))

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Schedule:
        """A new schedule from untrusted settings; settings not given take their defaults."""
        checked = validate_schedule_change(settings, new=True)
        return cls(**checked)  # type: ignore[arg-type]


def validate_schedule_change(
    change: Mapping[str, object], *, new: bool = False, limits: PayloadLimits = DEFAULT_LIMITS
) -> dict[str, object]:
    """The checked settings that a change names; InvalidInput names field and rule.

    A new schedule (`new=True`) needs `name`, `job_type` and `cron`. A change of an existing one may
    not have a `name`.
    """
    checks: dict[str, Check] = {
        **_CHECKS,
        "payload": lambda field, value: _check_payload(value, field, limits),
        "concurrency_key": optional(lambda field, value: check_key(value, field, limits)),
    }
    required = ("name", "job_type", "cron") if new else ()
    return validate_settings("schedule", change, checks, _FIELDS, required=required)


_CHECKS: Final[dict[str, Check]] = {
    "name": lambda field, value: check_schedule_name(value, field),
    **checks_of(ScheduleSettings),
}
_FIELDS: Final = frozenset(field.name for field in fields(Schedule))


# Slots that are due --------------------------------------------------------------------------


class FirePlan(NamedTuple):
    """Slots to fire now, oldest first, with their note, and the next slot after them.

    `missed_at` is the newest of the slots that never fire; `missed` counts them in words.
    """

    slots: tuple[datetime, ...]
    note: str | None
    missed_at: datetime | None
    missed: str | None
    next_at: datetime | None


def plan_fires(
    timing: Timing,
    missed: str,
    catch_up: int,
    first: datetime,
    now: datetime,
    most: int = BATCH,
    last: datetime | None = None,
) -> FirePlan:
    """The plan at `now` for a schedule whose first slot without an outcome is `first`.

    skip fires slots at most a minute late, coalesce the newest one, catch_up the newest `catch_up`.
    At most `most` fire at a time; the rest follow. Slots up to `last` passed before the clock was
    set back; they fire only if they are at most a minute late.
    """
    if last is not None and first <= last:
        passed = min(now - GRACE, last)
        after = first if first > passed else cron_.next_slot(timing, passed)
        if after is None or after > now:
            return FirePlan((), None, None, None, after)
        first = after
    in_grace = int(GRACE.total_seconds()) + 1
    keep = {"skip": in_grace, "coalesce": 1}.get(missed, catch_up)
    found = cron_.backlog(timing, first, now, keep + 1)
    due = found.newest[-keep:]
    if missed == "skip":
        due = [slot for slot in due if now - slot <= GRACE]
    older = found.total - len(due)
    slots, left = tuple(due[:most]), due[most:]
    next_at = left[0] if left else cron_.next_slot(timing, now)
    if older <= 0:
        return FirePlan(slots, None, None, None, next_at)
    counted = f"{older} slots" if found.is_exact else f"more than {older} slots"
    if older == 1:
        counted = "1 slot"
    if missed == "coalesce":
        return FirePlan(
            slots, f"also for {counted} missed since {_utc_text(first)}", None, None, next_at
        )
    missed_at = found.newest[-len(due) - 1]
    return FirePlan(slots, None, missed_at, f"{counted} missed since {_utc_text(first)}", next_at)


def replanned(
    timing: Timing, planned: datetime, last: datetime | None, since: datetime, now: datetime
) -> datetime | None:
    """The next slot of a schedule after the clock was set back; None: as planned.

    Slots of the last minute fire again, because the clock may have been ahead when they passed;
    but not slots before `since`, the last change of the schedule.
    """
    following = cron_.next_slot(timing, now)
    if following is None or following >= planned:
        return None
    if last is None or last - now <= GRACE:
        return following
    return cron_.next_slot(timing, max(now - GRACE, min(since, now)))


def _utc_text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
