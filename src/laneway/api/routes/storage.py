"""The route of the database itself; no lane owns it, so the permission must cover everything."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.models.workers import OldTransactionOut
from laneway.api.routes.health import listener_of
from laneway.control import database_size

router = APIRouter(tags=["health"])


class TableOut(BaseModel):
    """One of Laneway's tables; the rows are what PostgreSQL guesses."""

    name: str
    bytes: int = Field(description="With its indexes")
    live_rows: int
    dead_rows: int = Field(description="Wait for vacuum")
    vacuumed_at: datetime | None


class StorageOut(BaseModel):
    """The database, and how this replica is connected to it."""

    server_version: str
    schema_version: str | None = Field(description="The newest migration applied of those known")
    pending: list[str] = Field(description="Migrations to apply with `laneway db migrate`")
    unknown: list[str] = Field(description="Migrations of newer code")
    changed: list[str] = Field(description="Migrations applied in another form")
    bytes: int
    tables: list[TableOut] = Field(description="The largest first")
    oldest_transaction: OldTransactionOut | None
    connection: Literal["direct", "pooled"] = Field(
        description="pooled: by a transaction pooler, without prepared statements"
    )
    listens: bool = Field(description="false: by its settings this replica only polls")
    listener: Literal["listening", "polling", "off"] = Field(
        description="How streams hear of changes made elsewhere; off: nobody has one open"
    )


@router.get(
    "/admin/database",
    operation_id="read_database",
    dependencies=EXPENSIVE,
    response_model=StorageOut,
    responses=errors(),
)
async def read_database(
    request: Request, who: Annotated[Caller, Depends(everywhere("workers:view"))]
) -> Any:
    """Versions, sizes, dead rows, the oldest transaction, and how changes are heard of."""
    settings = request.app.state.settings
    return {
        **(await database_size.describe(who.database)).to_dict(),
        "connection": "pooled" if who.database.is_pooled else "direct",
        "listens": settings.can_listen,
        "listener": listener_of(request.app.state.hub),
    }
