"""Operations on lanes, done in a database."""

from __future__ import annotations

from typing import Any

from laneway.control import lanes
from laneway.control.lanes import load
from laneway.control.operators.history import implement_history
from laneway.control.operators.table import Operator, PageRequest, implement, implement_list
from laneway.domain.lane import Lane
from laneway.domain.lane_setup import read_table
from laneway.domain.page import Page, page_by_name
from laneway.errors import NotFound
from laneway.operations import lanes as operations


async def _list_lanes(who: Operator, page: PageRequest) -> Page[Any]:
    seen = [each for each in await lanes.inspect(who.db) if who.reaches(each.lane.name)]
    return page_by_name(seen, lambda each: each.lane.name, page.limit, page.cursor)


async def _find_lane(who: Operator, job_type: str) -> Lane:
    lane = await lanes.find(who.db, job_type)
    if not who.reaches(lane.name):
        raise NotFound(f"no lane that you may see takes {job_type}")
    return lane


implement_list(operations.list_lanes, _list_lanes)
implement(operations.find_lane, _find_lane)
implement(operations.get_lane, lambda who, name: lanes.get(who.db, name))
implement(
    operations.create_lane,
    lambda who, name, settings={}: lanes.create(who.db, {"name": name, **settings}, by=who.by),
)
implement(
    operations.load_lanes,
    lambda who, lanes, dry_run=False: load(
        who.db, tuple(read_table(lanes)), by=who.by, dry_run=dry_run
    ),
)
implement(
    operations.tune_lane,
    lambda who, name, change: lanes.tune(who.db, name, change, by=who.by, as_text=who.as_text),
)
implement(
    operations.take_type,
    lambda who, name, job_type: lanes.move_type(who.db, job_type, name, by=who.by),
)
implement_history("lane", operations.list_lane_changes, operations.roll_back_lane)
