"""The operations on schedules. Each belongs to a workspace, and to the lane of its job type."""

from __future__ import annotations

from typing import Annotated, Any, Final

from laneway.domain.annotations import Doc
from laneway.domain.change import Change, RollbackTarget
from laneway.domain.page import Page
from laneway.domain.schedule import RunNow, Schedule, ScheduleName, ScheduleSettings, Slot
from laneway.operations.operation import Operation, operation

_SCHEDULES: Final = "/admin/schedules"
_SCHEDULE: Final = f"{_SCHEDULES}/{{name}}"


@operation(
    "GET",
    _SCHEDULES,
    permission="schedules:view",
    scope="schedule",
    is_expensive=True,
    command="schedules ls",
)
def list_schedules() -> Page[Schedule]:
    """List the schedules in reach, by name; a page is shorter if they are large."""


@operation(
    "POST",
    _SCHEDULES,
    permission="schedules:manage",
    scope="schedule",
    status=201,
    location=_SCHEDULE,
    body="NewSchedule",
    defaults=Schedule,
    command="schedules set",
)
def create_schedule(name: ScheduleName, settings: ScheduleSettings) -> Schedule:
    """Create a schedule; its first slot is in the future."""


@operation(
    "GET", _SCHEDULE, permission="schedules:view", scope="schedule", command="schedules show"
)
def get_schedule(name: ScheduleName) -> Schedule:
    """Show one schedule with its state."""


@operation(
    "PATCH",
    _SCHEDULE,
    permission="schedules:manage",
    scope="schedule",
    body="ScheduleChange",
    command="schedules set",
)
def change_schedule(name: ScheduleName, change: ScheduleSettings) -> Schedule:
    """Change the given fields; slots count from now on. `enabled` stops and resumes it."""


@operation(
    "DELETE",
    _SCHEDULE,
    permission="schedules:manage",
    scope="schedule",
    status=204,
    command="schedules delete",
)
def delete_schedule(name: ScheduleName) -> None:
    """Delete a schedule and its slots; the jobs it submitted stay."""


@operation(
    "POST",
    f"{_SCHEDULE}/run",
    permission="schedules:manage",
    scope="schedule",
    body="RunRequest",
    command="schedules run",
)
def run_schedule(
    name: ScheduleName,
    *,
    check: Annotated[bool, Doc("Run only if its check passes on a worker")] = False,
) -> RunNow:
    """Run the schedule once, now."""


@operation(
    "GET",
    f"{_SCHEDULE}/slots",
    permission="schedules:view",
    scope="schedule",
    command="schedules slots",
)
def list_slots(name: ScheduleName) -> Page[Slot]:
    """List the slots of a schedule with their outcome, newest first."""


@operation(
    "GET",
    f"{_SCHEDULE}/history",
    permission="schedules:view",
    scope="everywhere",
    is_expensive=True,
    command="schedules history",
)
def list_schedule_changes(name: ScheduleName) -> Page[Change]:
    """List the kept changes of a schedule, newest first; also of a deleted one.

    It may have belonged to another workspace, so this needs the permission everywhere.
    """


@operation(
    "POST",
    f"{_SCHEDULE}/rollback",
    permission="schedules:manage",
    scope="everywhere",
    field="change",
    command="schedules rollback",
)
def roll_back_schedule(name: ScheduleName, to: RollbackTarget = None) -> Change | None:
    """Roll a schedule back to an earlier state, which may belong to another workspace."""


SCHEDULES: Final[tuple[Operation[Any, Any], ...]] = (
    list_schedules, create_schedule, get_schedule, change_schedule, delete_schedule, run_schedule,
    list_slots, list_schedule_changes, roll_back_schedule,
)  # fmt: skip
