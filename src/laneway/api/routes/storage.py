"""The state of the database. It belongs to no lane, so the permission must cover everything."""

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
from laneway.domain.codec import to_json

router = APIRouter(tags=["health"])


class TableOut(BaseModel):
    """One of Laneway's tables; the row counts are PostgreSQL's estimates."""

    name: str
    bytes: int = Field(description="Including its indexes")
    live_rows: int
    dead_rows: int = Field(description="Not yet vacuumed")
    vacuumed_at: datetime | None


class StorageOut(BaseModel):
    """The database, and how this replica is connected to it."""

    server_version: str
    schema_version: str | None = Field(description="The newest applied migration of this version")
    pending: list[str] = Field(description="Migrations to apply with `laneway db migrate`")
    unknown: list[str] = Field(description="Migrations of newer code")
    changed: list[str] = Field(description="Migrations that were applied with another text")
    bytes: int
    tables: list[TableOut] = Field(description="The largest first")
    oldest_transaction: OldTransactionOut | None  # type: ignore[valid-type]
    connection: Literal["direct", "pooled"] = Field(
        description="pooled: through a transaction pooler, without prepared statements"
    )
    listens: bool = Field(description="false: the settings make this replica poll")
    listener: Literal["listening", "polling", "off"] = Field(
        description="How streams learn of changes by other processes; off: no stream is open"
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
    """Show versions, sizes, dead rows, the oldest transaction and the kind of connection."""
    settings = request.app.state.settings
    return {
        **to_json(await database_size.describe(who.database)),
        "connection": "pooled" if who.database.is_pooled else "direct",
        "listens": settings.can_listen,
        "listener": listener_of(request.app.state.hub),
    }
