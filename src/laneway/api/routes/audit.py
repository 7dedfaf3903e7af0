"""The audit. It contains everything, so the permission must cover everything."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime, BaseModel, Field

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.paging import Cursor, Limit, PageOut
from laneway.api.http.portions import RowBatch, page
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.control import audit
from laneway.domain.actor import Door
from laneway.domain.audit import LONGEST_AGE, AuditFilter, Outcome

router = APIRouter(tags=["audit"])

Reader = Annotated[Caller, Depends(everywhere("audit:read"))]
Text = Annotated[str | None, Query(min_length=1, max_length=512)]


class AuditEntryOut(BaseModel):
    """An audited action: actor, object, interface (`door`) and outcome."""

    id: int
    at: datetime
    actor: str
    principal_id: UUID | None
    door: Door
    action: str
    kind: str
    name: str | None
    workspace: str | None
    outcome: Literal["done", "refused"]
    before: dict[str, Any] | None = Field(description="null: it was created, or nothing changed")
    after: dict[str, Any] | None = Field(description="null: it was deleted, or nothing changed")
    request_id: str | None
    address: str | None = Field(
        description="The connection's address, or the one that a trusted proxy reports"
    )
    claimed: list[Literal["actor", "door", "request_id"]] = Field(
        description="Fields that the caller reported itself; the server verified the others"
    )


@router.get(
    "/admin/audit",
    operation_id="list_acts",
    dependencies=EXPENSIVE,
    response_model=PageOut[AuditEntryOut],
    responses=errors(),
)
async def list_acts(
    who: Reader,
    actor: Text = None,
    door: Annotated[Door | None, Query()] = None,
    action: Text = None,
    kind: Text = None,
    name: Text = None,
    workspace: Text = None,
    outcome: Annotated[Outcome | None, Query()] = None,
    since: Annotated[AwareDatetime | None, Query()] = None,
    newer_than: Annotated[float | None, Query(ge=0, le=LONGEST_AGE, description="Seconds")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List audit entries that match all given filters, newest first.

    A search examines 50,000 entries per page. If a page is short, `next_cursor` continues.
    """
    wanted = AuditFilter(
        actor=actor,
        door=door,
        action=action,
        kind=kind,
        name=name,
        workspace=workspace,
        outcome=outcome,
        since=since,
        newer_than=newer_than,
    )

    async def read(count: int, after: str | None) -> RowBatch:
        found = await audit.listing(who.database, wanted, limit=count, cursor=after, as_text=True)
        return RowBatch([each.to_dict() for each in found.items], found.next_cursor)

    return await page(read, limit, cursor)
