"""The table that binds each declared operation to its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from laneway.domain.lane import check_lane_name
from laneway.domain.page import Page
from laneway.domain.permissions import Reach
from laneway.operations.operation import Invocation, Operation
from laneway.store.database import Database
from laneway.store.quotas import Quota

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operator:
    """The actor of an operation, its database, and its lanes; None: all lanes.

    With `as_text`, large JSON of outputs is `StoredJson`. `reach` is what the permission covers;
    None: everything. Jobs that it submits, or events that it sends, count against the
    quota.
    """

    db: Database
    by: str
    lanes: frozenset[str] | None = None
    as_text: bool = False
    reach: Reach | None = None
    quota: Quota | None = None

    def reaches(self, lane: str) -> bool:
        return self.lanes is None or lane in self.lanes

    def within(self, lane: str | None) -> frozenset[str] | None:
        """The requested lane; without one, all lanes in reach."""
        return self.lanes if lane is None else frozenset({check_lane_name(lane, "lane")})


class PageRequest(NamedTuple):
    """Which page of a list."""

    limit: int
    cursor: str | None

    def of(self, found: list[T], key: Callable[[T], object]) -> Page[T]:
        """The page of these items; a full one has a cursor, the key of its last item."""
        return Page(found, str(key(found[-1])) if len(found) == self.limit else None)


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
