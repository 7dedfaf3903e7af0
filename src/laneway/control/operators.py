"""The functions that perform each declared operation in a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from laneway.control import history, lanes
from laneway.domain.lane import Lane
from laneway.domain.page import Page, page_by_name
from laneway.errors import NotFound
from laneway.operations import lanes as operations
from laneway.operations.operation import Invocation, Operation
from laneway.store.database import Database

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operator:
    """The actor of an operation, its database, and its lanes; None: all lanes.

    With `as_text`, large JSON of outputs is `StoredJson`.
    """

    db: Database
    by: str
    lanes: frozenset[str] | None = None
    as_text: bool = False

    def reaches(self, lane: str) -> bool:
        return self.lanes is None or lane in self.lanes


class PageRequest(NamedTuple):
    """Which page of a list."""

    limit: int
    cursor: str | None


# By operation, the function that does it.
WORK: Final[dict[Operation[Any, Any], Callable[..., Awaitable[Any]]]] = {}


def implement(
    operation: Operation[P, R], work: Callable[Concatenate[Operator, P], Awaitable[R]]
) -> None:
    WORK[operation] = work


def implement_list(
    operation: Operation[P, Page[T]],
    work: Callable[Concatenate[Operator, PageRequest, P], Awaitable[Page[T]]],
) -> None:
    WORK[operation] = work


async def perform(who: Operator, asked: Invocation[R]) -> R:
    """Do the operation."""
    done: R = await WORK[asked.operation](who, **asked.arguments)
    return done


async def read_page(who: Operator, asked: Invocation[Page[T]], page: PageRequest) -> Page[T]:
    """Read one page of a list."""
    found: Page[T] = await WORK[asked.operation](who, page, **asked.arguments)
    return found


# -- lanes ------------------------------------------------------------------------------------


async def _list_lanes(who: Operator, page: PageRequest) -> Page[Any]:
    seen = [each for each in await lanes.inspect(who.db) if who.reaches(each.lane.name)]
    return page_by_name(seen, lambda each: each.lane.name, page.limit, page.cursor)


async def _find_lane(who: Operator, job_type: str) -> Lane:
    lane = await lanes.find(who.db, job_type)
    if not who.reaches(lane.name):
        raise NotFound(f"no lane in reach takes {job_type}")
    return lane


implement_list(operations.list_lanes, _list_lanes)
implement(operations.find_lane, _find_lane)
implement(operations.get_lane, lambda who, name: lanes.get(who.db, name))
implement(
    operations.create_lane,
    lambda who, name, settings={}: lanes.create(who.db, {"name": name, **settings}, by=who.by),
)
implement(
    operations.tune_lane,
    lambda who, name, change: lanes.tune(who.db, name, change, by=who.by, as_text=who.as_text),
)
implement(
    operations.take_type,
    lambda who, name, job_type: lanes.move_type(who.db, job_type, name, by=who.by),
)
implement_list(
    operations.list_lane_changes,
    lambda who, page, name: history.page(
        who.db, "lane", name, limit=page.limit, cursor=page.cursor, as_text=who.as_text
    ),
)
implement(
    operations.roll_back_lane,
    lambda who, name, to=None: history.rollback(
        who.db, "lane", name, to=to, by=who.by, as_text=who.as_text
    ),
)
