"""Schedules and their slots, as statements."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from laneway.domain.payload import PayloadLimits
from laneway.domain.schedule import RunNow, Schedule, Slot, encode_payload
from laneway.domain.stored_json import read_stored
from laneway.store.statement import Row, Statement, maybe_row, nothing, one_row, rows_of, scalar

_COLUMNS: Final = (
    "job_type", "payload", "cron", "timezone", "missed", "catch_up", "check_name", "priority",
    "max_retries", "concurrency_key", "workspace", "tags", "enabled",
)  # fmt: skip
_SETTINGS: Final = (
    "job_type", "cron", "timezone", "missed", "catch_up", "check_name", "priority", "max_retries",
    "concurrency_key", "workspace",
)  # fmt: skip


# For users -------------------------------------------------------------------------------


def _params(values: Mapping[str, Any], limits: PayloadLimits) -> dict[str, Any]:
    params = {column: values.get(column) for column in _COLUMNS}
    params["payload"] = encode_payload(values.get("payload"), limits)
    params["tags"] = list(values.get("tags") or ())
    return params


def create(schedule: Schedule, by: str, limits: PayloadLimits) -> Statement[bool | None]:
    """Creates a schedule unless the name is taken."""
    values = {column: getattr(schedule, column) for column in _COLUMNS}
    return Statement(
        "schedules/create_schedule",
        scalar,
        {"name": schedule.name, "by": by, **_params(values, limits)},
    )


def change(
    name: str, changed: Mapping[str, object], by: str, limits: PayloadLimits
) -> Statement[bool | None]:
    """Changes the columns in `changed` (already validated); None for an unknown schedule."""
    return Statement(
        "schedules/change_schedule",
        scalar,
        {"name": name, "by": by, "columns": list(changed), **_params(changed, limits)},
    )


def delete(name: str, by: str) -> Statement[bool | None]:
    return Statement("schedules/delete_schedule", scalar, {"name": name, "by": by})


# The slots that are shown with a schedule.
RECENT: Final = 10


class ReadSchedule(NamedTuple):
    """A schedule, and the database's clock when it was read."""

    schedule: Schedule
    now: datetime


def _read(row: Row, *, as_text: bool = False) -> ReadSchedule:
    (name, job_type, payload, cron, timezone, missed, catch_up, check_name, priority, max_retries,
     key, workspace, tags, enabled, error, created_at, updated_at, updated_by, next_at, failures,
     now, *columns) = row  # fmt: skip
    # One array for each field of the slots; null without a slot.
    recent = tuple(Slot(*slot) for slot in zip(*(each or () for each in columns), strict=True))
    return ReadSchedule(
        Schedule(
            name=name,
            job_type=job_type,
            payload=read_stored(payload, as_text=as_text),
            cron=cron,
            timezone=timezone,
            missed=missed,
            catch_up=catch_up,
            check_name=check_name,
            priority=priority,
            max_retries=max_retries,
            concurrency_key=key,
            workspace=workspace,
            tags=tuple(tags),
            enabled=enabled,
            error=error,
            created_at=created_at,
            updated_at=updated_at,
            updated_by=updated_by,
            next_at=next_at,
            check_failures=failures,
            last=recent[0] if recent else None,
            recent=recent,
            as_of=now,
        ),
        now,
    )


def read(*names: str, as_text: bool = False, recent: int = RECENT) -> Statement[list[ReadSchedule]]:
    """The schedules of these names, or all, with their newest slots.

    `as_text`: large payloads as `StoredJson`.
    """
    return Statement(
        "schedules/read_schedules",
        lambda rows: [_read(row, as_text=as_text) for row in rows],
        {"names": list(names) or None, "recent": recent},
        may_be_large=True,
    )


def settings(names: Iterable[str]) -> Statement[dict[str, dict[str, Any]]]:
    """The settings of the named schedules that exist, without `enabled`, by name."""
    return Statement(
        "schedules/read_settings",
        lambda rows: {row[0]: _settings(row) for row in rows},
        {"names": list(names)},
        may_be_large=True,
    )


def _settings(row: Row) -> dict[str, Any]:
    _, *values, tags, payload = row
    found = dict(zip(_SETTINGS, values, strict=True))
    return {**found, "tags": tuple(tags), "payload": json.loads(payload)}


class ScheduleScope(NamedTuple):
    """The fields that decide which callers may see a schedule."""

    name: str
    workspace: str
    job_type: str


def scopes() -> Statement[list[ScheduleScope]]:
    """Every schedule by name, without its payload."""
    return Statement("schedules/list_scopes", rows_of(ScheduleScope), {})


def slots(name: str, limit: int, before: datetime | None = None) -> Statement[list[Slot]]:
    """The newest slots, newest first."""
    return Statement(
        "schedules/list_slots", rows_of(Slot), {"name": name, "limit": limit, "before": before}
    )


def run_now(name: str, by: str, *, check: bool) -> Statement[RunNow | None]:
    """Fires a schedule now; with `check`, requests its check first. None: unknown schedule."""
    return Statement(
        "schedules/run_schedule", maybe_row(RunNow), {"name": name, "by": by, "check": check}
    )


# For the scheduler ----------------------------------------------------------------------


class Due(NamedTuple):
    """A schedule with a due slot; without a planned slot when `next_at` is None."""

    name: str
    job_type: str
    cron: str
    timezone: str
    missed: str
    catch_up: int
    check_name: str | None
    seen: datetime
    next_at: datetime | None
    last_at: datetime | None
    asked_at: datetime | None
    asked_by: str | None


class DueSchedules(NamedTuple):
    """The due schedules at the database's `now`; epoch None: this process is not the leader."""

    now: datetime
    epoch: int | None
    wait_s: float | None
    due: list[Due]


def find_due(holder: UUID, checks: Collection[str], limit: int = 50) -> Statement[DueSchedules]:
    """Schedules that this process may fire now, and the seconds until the next ones."""

    def decode(rows: list[Row]) -> DueSchedules:
        due = [Due(*row[3:]) for row in rows if row[3] is not None]
        now, epoch, wait_s = rows[0][:3]
        return DueSchedules(now, epoch, wait_s, due)

    return Statement(
        "schedules/find_due", decode, {"holder": holder, "checks": sorted(checks), "limit": limit}
    )


def plan(name: str, seen: datetime, next_at: datetime) -> Statement[bool | None]:
    """Plans the next slot, unless the schedule is planned, locked or changed since `seen`."""
    return Statement(
        "schedules/plan_schedule", scalar, {"name": name, "seen": seen, "next_at": next_at}
    )


def find_ahead() -> Statement[list[tuple[datetime, Due]]]:
    """Schedules whose next slot is in the future, each with the database's clock."""
    return Statement("schedules/find_ahead", lambda rows: [(row[0], Due(*row[1:])) for row in rows])


def replan(due: Due, next_at: datetime) -> Statement[bool | None]:
    """Moves the next slot of a schedule to an earlier time."""
    return Statement(
        "schedules/replan_schedule",
        scalar,
        {"name": due.name, "seen": due.seen, "from": due.next_at, "next_at": next_at},
    )


def begin_check(due: Due, holder: UUID, lease_s: float) -> Statement[bool | None]:
    """Takes the lease of the schedule's check, if the schedule is unchanged since it was read."""
    return Statement(
        "schedules/begin_check",
        scalar,
        {
            "name": due.name,
            "seen": due.seen,
            "next_at": due.next_at,
            "asked_at": due.asked_at,
            "holder": holder,
            "lease_s": lease_s,
        },
    )


def release_checks(holder: UUID) -> Statement[None]:
    return Statement("schedules/release_checks", nothing, {"holder": holder})


class SlotEntry(NamedTuple):
    """A slot to record: submitted (with its job), skipped, missed or failed."""

    slot: datetime
    outcome: str
    note: str | None = None


class Fired(NamedTuple):
    """The result of a fire: fired, fenced, changed, moved or busy; `taken`: new slots."""

    answer: str
    taken: int
    job_type: str | None


def fire(
    due: Due,
    entries: Sequence[SlotEntry],
    next_at: datetime | None,
    holder: UUID,
    epoch: int | None,
    *,
    manual: bool = False,
    check_error: str | None = None,
) -> Statement[Fired]:
    """Records slots and submits their jobs, fenced; without an epoch, by the check's lease."""
    return Statement(
        "schedules/fire_slots",
        one_row(Fired),
        {
            "name": due.name,
            "seen": due.seen,
            "from_at": due.asked_at if manual else due.next_at,
            "next_at": next_at,
            "slots": [entry.slot for entry in entries],
            "outcomes": [entry.outcome for entry in entries],
            "notes": [entry.note for entry in entries],
            "holder": holder,
            "epoch": epoch,
            "manual": manual,
            "check_error": check_error,
        },
    )


def stop(name: str, seen: datetime, error: str) -> Statement[bool | None]:
    """Disables a schedule that cannot be fired."""
    return Statement(
        "schedules/stop_schedule", scalar, {"name": name, "seen": seen, "error": error}
    )
