"""The history of lanes, limits, schedules and the pause gate."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Response

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.paging import Cursor, Limit, id_of
from laneway.api.http.portions import RowBatch, page
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.models.declared import page_model
from laneway.control import history
from laneway.domain.change import Change, Kind
from laneway.domain.codec import to_json

router = APIRouter(tags=["workers"])

Manager = Annotated[Caller, Depends(everywhere("workers:manage"))]
_KINDS: Final[list[Kind]] = ["lane", "limit", "gate"]


@router.get(
    "/admin/changes",
    operation_id="list_changes",
    dependencies=EXPENSIVE,
    response_model=page_model(Change),
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

    async def read(count: int, after: str | None) -> RowBatch:
        before = id_of(after)
        found = await history.history(who.database, kind, limit=count, before=before, as_text=True)
        following = str(found[-1].id) if len(found) == count else None
        return RowBatch(to_json(found), following)

    return await page(read, limit, cursor)
