"""Operations on schedules, done in a database."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from laneway.control import history, schedules
from laneway.control.operators.history import implement_changes
from laneway.control.operators.table import Operator, PageRequest, implement, implement_list
from laneway.domain.bounds import check_priority_bound
from laneway.domain.change import Change
from laneway.domain.page import Page, page_by_name
from laneway.domain.schedule import RunNow, Schedule, Slot
from laneway.errors import InvalidInput, NotFound
from laneway.operations import schedules as operations
from laneway.store import lanes


async def _list_schedules(who: Operator, page: PageRequest) -> Page[Schedule]:
    state = await who.db.run(lanes.read())
    seen = [
        each.name
        for each in await schedules.scopes(who.db)
        if who.reach is None
        or who.reach.covers(owner=None, workspace=each.workspace, lane=state.lane_of(each.job_type))
    ]
    names = page_by_name(seen, str, page.limit, page.cursor)
    return Page(await schedules.read(who.db, names.items, as_text=who.as_text), names.next_cursor)


async def _run(who: Operator, name: str, *, check: bool = False) -> RunNow:
    return await schedules.run_now(who.db, name, by=who.by, check=check, quota=who.quota)


async def _list_slots(who: Operator, page: PageRequest, name: str) -> Page[Slot]:
    found = await schedules.slots(who.db, name, limit=page.limit, before=_time_of(page.cursor))
    return Page(found, found[-1].slot.isoformat() if len(found) == page.limit else None)


def _time_of(cursor: str | None) -> datetime | None:
    try:
        at = None if cursor is None else datetime.fromisoformat(cursor)
    except ValueError:
        at = None
    if cursor is not None and (at is None or at.tzinfo is None):
        raise InvalidInput("cursor", "must be the next_cursor of a page")
    return at


async def _roll_back(who: Operator, name: str, to: int | None = None) -> Change | None:
    async with who.db.joined() as one:
        change = await history.rollback(
            one, "schedule", name, to=to, by=who.by, as_text=who.as_text
        )
        if who.reach is not None:
            # A rollback may also delete it.
            with suppress(NotFound):
                found = await schedules.get(one, name, as_text=True)
                lane = (await one.run(lanes.read())).lane_of(found.job_type)
                bounds = who.reach.bounds(owner=None, workspace=found.workspace, lane=lane)
                check_priority_bound(found.priority, bounds)
    return change


implement_list(operations.list_schedules, _list_schedules)
implement(
    operations.create_schedule,
    lambda who, name, settings: schedules.put(
        who.db, name, settings, by=who.by, is_new=True, as_text=who.as_text
    ),
)
implement(
    operations.get_schedule,
    lambda who, name: schedules.get(who.db, name, as_text=who.as_text),
)
implement(
    operations.change_schedule,
    lambda who, name, change: schedules.put(
        who.db, name, change, by=who.by, is_new=False, as_text=who.as_text
    ),
)
implement(operations.delete_schedule, lambda who, name: schedules.delete(who.db, name, by=who.by))
implement(operations.run_schedule, _run)
implement_list(operations.list_slots, _list_slots)
implement_changes("schedule", operations.list_schedule_changes)
implement(operations.roll_back_schedule, _roll_back)
