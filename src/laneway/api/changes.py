"""The history of an object of the control plane, as lanes and schedules answer it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from laneway.api.answer import told
from laneway.api.idempotency import Once
from laneway.api.paging import LARGEST_ID, Page, Request, id_of
from laneway.control import history
from laneway.store.database import Database


class ChangeOut(BaseModel):
    """Who changed an object, from what to what."""

    id: int
    at: datetime
    by: str
    kind: Literal["lane", "limit", "schedule", "gate"]
    name: str
    verb: Literal["created", "changed", "deleted"]
    before: dict[str, Any] | None = Field(description="null: it was created")
    after: dict[str, Any] | None = Field(description="null: it was deleted")


class RollbackOrder(Request):
    """Back to which state."""

    to: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_ID,
        description="The id of a change: the state right after it; 0: before the first that is "
        "kept; null: before the newest",
    )


class RollbackOut(BaseModel):
    """What a rollback did."""

    change: ChangeOut | None = Field(description="null: it was so already")


async def page_of(
    db: Database, kind: str, name: str, limit: int, cursor: str | None
) -> Page[ChangeOut]:
    """Changes of one object, newest first."""
    found = await history.history(db, kind, name, limit=limit, before=id_of(cursor))
    following = str(found[-1].id) if len(found) == limit else None
    return Page(
        items=[ChangeOut.model_validate(each.to_dict()) for each in found], next_cursor=following
    )


async def roll_back(
    once: Once, kind: str, name: str, order: RollbackOrder | None, by: str
) -> Response:
    """Puts an object back to an earlier state, once."""
    to = None if order is None else order.to

    async def act(db: Database) -> Response:
        change = await history.rollback(db, kind, name, to=to, by=by)
        return told(RollbackOut, {"change": None if change is None else change.to_dict()})

    return await once.answer(act)
