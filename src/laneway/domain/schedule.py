"""Schedules: settings, slots, and the rules for missed slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from laneway.domain import cron as cron_
from laneway.domain.change_rules import Check, check_flag, check_whole, optional, validate_settings
from laneway.domain.cron import Timing, check_cron, check_timezone
from laneway.domain.cron_words import words
from laneway.domain.job import DEFAULT_WORKSPACE, MAX_RETRIES_RANGE, PRIORITY_RANGE, NewJob
from laneway.domain.lane import check_job_type, check_lane_name
from laneway.domain.next_runs import FIRES, Fire, fire_at, fires_after
from laneway.domain.payload import DEFAULT_LIMITS, JsonText, PayloadLimits, check_key, encode
from laneway.domain.stored_json import StoredJson
from laneway.domain.text import check_text
from laneway.errors import InvalidInput

MISSED: Final = ("skip", "coalesce", "catch_up")
GRACE: Final = timedelta(seconds=60)
CHECK_NAME_BYTES: Final = 128
CATCH_UP_RANGE: Final = (1, 1000)
# Slots that one transaction records.
BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of a schedule and its outcome."""

    slot: datetime
    manual: bool
    outcome: str
    job_id: UUID | None
    note: str | None
    at: datetime

    def to_dict(self) -> dict[str, object]:
        return {
            "slot": self.slot.isoformat(),
            "manual": self.manual,
            "outcome": self.outcome,
            "job_id": str(self.job_id) if self.job_id else None,
            "note": self.note,
            "at": self.at.isoformat(),
        }


class RunNow(NamedTuple):
    """The result of a run now: submitted, failed or asked."""

    answer: str
    slot: datetime
    job_id: UUID | None
    job_type: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A rule that submits jobs of a type on a cron, its next slot and its newest one.

    `as_of` is the database's clock at the time of the read.
    """

    name: str
    job_type: str
    cron: str
    payload: Any = None
    timezone: str = "UTC"
    missed: str = "coalesce"
    catch_up: int = 10
    check_name: str | None = None
    priority: int | None = None
    max_retries: int | None = None
    concurrency_key: str | None = None
    workspace: str = DEFAULT_WORKSPACE
    tags: tuple[str, ...] = ()
    enabled: bool = True
    error: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    updated_by: str | None = None
    next_at: datetime | None = None
    check_failures: int = 0
    last: Slot | None = None
    as_of: datetime | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """The cron expression in plain words, if a short sentence describes it."""
        return words(self.cron, self.timezone)

    @property
    def next_fires(self) -> tuple[Fire, ...]:
        """The next three slots; none while it is disabled."""
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
        # Due: it fires as soon as a worker is there, for all slots due by then.
        return (fire_at(timing, self.next_at), *fires_after(timing, now, FIRES - 1))

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Schedule:
        """A new schedule from untrusted settings; the others take their defaults."""
        checked = validate_schedule_change(settings, new=True)
        return cls(**checked)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """The schedule as JSON values."""
        return {
            "name": self.name,
            "job_type": self.job_type,
            "payload": {} if self.payload is None else self.payload,
            "cron": self.cron,
            "timezone": self.timezone,
            "words": self.words,
            "missed": self.missed,
            "catch_up": self.catch_up,
            "check_name": self.check_name,
            "priority": self.priority,
            "max_retries": self.max_retries,
            "concurrency_key": self.concurrency_key,
            "workspace": self.workspace,
            "tags": list(self.tags),
            "enabled": self.enabled,
            "error": self.error,
            "next_at": _iso(self.next_at),
            "next_fires": [each.to_dict() for each in self.next_fires],
            "check_failures": self.check_failures,
            "last": self.last.to_dict() if self.last else None,
            "created_at": _iso(self.created_at),
            "updated_at": _iso(self.updated_at),
            "updated_by": self.updated_by,
            "as_of": _iso(self.as_of),
        }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


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


def validate_schedule_change(
    change: Mapping[str, object], *, new: bool = False, limits: PayloadLimits = DEFAULT_LIMITS
) -> dict[str, object]:
    """The checked settings that a change names; InvalidInput names field and rule.

    A new schedule (`new=True`) needs `name`, `job_type` and `cron`. A change of an existing one may
    not have a `name`.
    """
    checks: dict[str, Check] = {
        **_CHECKS,
        "payload": lambda _, value: _payload(value, limits),
        "concurrency_key": optional(lambda field, value: check_key(value, field, limits)),
    }
    required = ("name", "job_type", "cron") if new else ()
    return validate_settings("schedule", change, checks, _FIELDS, required=required)


def _payload(value: object, limits: PayloadLimits) -> object:
    if not encode_payload(value, limits).lstrip().startswith("{"):
        raise InvalidInput("payload", "must be an object")
    return value


def _missed(field: str, value: object) -> str:
    if not isinstance(value, str) or value not in MISSED:
        raise InvalidInput(field, f"must be one of {', '.join(MISSED)}")
    return value


def _job_field(field: str, value: object) -> object:
    """A field that a submit has too, by the same rule."""
    if field == "tags":
        if not isinstance(value, (list, tuple)):
            raise InvalidInput(field, "must be a list of texts")
        value = tuple(value)
    NewJob(id=UUID(int=0), job_type="x", **{field: value}).check()  # type: ignore[arg-type]
    return value


_CHECKS: Final[dict[str, Check]] = {
    "name": lambda field, value: check_schedule_name(value, field),
    "job_type": lambda field, value: check_job_type(value, field),
    "cron": lambda field, value: check_cron(value, field),
    "timezone": lambda field, value: check_timezone(value, field),
    "missed": _missed,
    "catch_up": check_whole(*CATCH_UP_RANGE),
    "check_name": optional(lambda field, value: check_check_name(value, field)),
    "priority": optional(check_whole(*PRIORITY_RANGE)),
    "max_retries": optional(check_whole(*MAX_RETRIES_RANGE)),
    "workspace": _job_field,
    "tags": _job_field,
    "enabled": check_flag,
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


def decide(
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
            slots, f"also for {counted} missed since {_minute(first)}", None, None, next_at
        )
    missed_at = found.newest[-len(due) - 1]
    return FirePlan(slots, None, missed_at, f"{counted} missed since {_minute(first)}", next_at)


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


def _minute(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
