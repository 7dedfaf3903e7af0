"""The caller and its permissions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from laneway import __version__
from laneway.api.http.auth import Caller, caller
from laneway.api.http.problems import errors
from laneway.domain.permissions import PERMISSIONS

router = APIRouter(tags=["access"])


class TermOut(BaseModel):
    """The jobs that match all fields that are not null."""

    owner: str | None
    workspace: str | None
    lanes: list[str] | None


class MeOut(BaseModel):
    """The principal of this token or session."""

    id: UUID
    name: str
    kind: Literal["person", "service"]
    permissions: dict[str, list[TermOut]] = Field(
        description="The jobs that each permission covers: those that match any of its terms"
    )
    job_types: list[str] | None = Field(
        description="The job types that this token may claim; null: any type"
    )
    token_expires_at: datetime | None = Field(
        description="When this token expires; null: never, or a browser's session"
    )
    server_version: str = Field(description="The version of the server that answers")
    server_time: datetime = Field(description="The clock of the server that answers")
    csrf: str | None = Field(
        description="A browser's session must send it as X-CSRF-Token with every change"
    )


@router.get("/me", operation_id="get_me", response_model=MeOut, responses=errors())
async def get_me(who: Annotated[Caller, Depends(caller)]) -> MeOut:
    """Show the caller and its permissions."""
    types, expiry = who.access.token_job_types, who.access.token_expiry
    reaches = {name: who.access.reach(name) for name in PERMISSIONS}
    return MeOut(
        id=who.access.principal_id,
        name=who.access.name,
        kind=who.access.kind,
        permissions={
            name: [TermOut.model_validate(term) for term in reach.to_list()]
            for name, reach in reaches.items()
            if not reach.is_empty
        },
        job_types=None if types is None else sorted(types),
        token_expires_at=None if expiry is None else expiry.at,
        server_version=__version__,
        server_time=datetime.now(UTC),
        csrf=who.access.csrf,
    )
