"""The history of lanes, limits, schedules and the pause gate, and rollbacks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from laneway.api.http.auth import Caller
from laneway.api.http.idempotency import IdempotencyGuard
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.paging import Cursor, Limit, RequestBody, id_of
from laneway.api.http.portions import RowBatch, page
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.models.declared import page_model
from laneway.control import history
from laneway.domain.change import LARGEST_ID, Change, Kind
from laneway.domain.codec import to_json
from laneway.domain.json_writer import write_json
from laneway.operations.models import output_model
from laneway.store.database import Database

router = APIRouter(tags=["workers"])

Manager = Annotated[Caller, Depends(everywhere("workers:manage"))]
_KINDS: Final[list[Kind]] = ["lane", "limit", "gate"]


ChangeOut = output_model(Change)
ChangePage = page_model(Change)


class RollbackRequest(RequestBody):
    """The state to roll back to."""

    to: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_ID,
        description="The id of a change: the state right after it; 0: before the oldest kept "
        "change; null: before the newest",
    )


class RollbackOut(BaseModel):
    """The change that a rollback made."""

    change: ChangeOut | None = Field(description="null: unchanged")  # type: ignore[valid-type]


@router.get(
    "/admin/changes",
    operation_id="list_changes",
    dependencies=EXPENSIVE,
    response_model=ChangePage,
    responses=errors(),
)
async def list_changes(
    who: Manager,
    kind: Annotated[list[Kind], Query(min_length=1, max_length=4)] = _KINDS,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List all kept changes of these kinds, newest first.

    Changes of schedules need schedules:view everywhere.
    """
    if "schedule" in kind and not who.access.allows_everywhere("schedules:view"):
        await who.refuse("schedules:view everywhere", "GET /admin/changes", "schedule")
    return await page_of(who.database, list(kind), None, limit, cursor)


async def page_of(
    db: Database, kind: str | list[str], name: str | None, limit: int, cursor: str | None
) -> Response:
    """A page of the changes of one object, or of all of a kind, newest first."""

    async def read(count: int, after: str | None) -> RowBatch:
        before = id_of(after)
        found = await history.history(db, kind, name, limit=count, before=before, as_text=True)
        following = str(found[-1].id) if len(found) == count else None
        return RowBatch(to_json(found), following)

    return await page(read, limit, cursor)


async def roll_back(
    guard: IdempotencyGuard,
    kind: str,
    name: str,
    body: RollbackRequest | None,
    by: str,
    check: Callable[[Database], Awaitable[None]] | None = None,
) -> Response:
    """Roll an object back to an earlier state, unless `check` refuses the result."""
    to = None if body is None else body.to

    async def apply(db: Database) -> Response:
        async with db.joined() as one:
            change = await history.rollback(one, kind, name, to=to, by=by, as_text=True)
            if check is not None:
                await check(one)
        written = write_json(to_json(change))
        return Response(b'{"change":%b}' % written, media_type="application/json")

    return await guard.run(apply)
