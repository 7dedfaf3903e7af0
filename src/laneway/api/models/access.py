"""Principals, roles, grants and tokens as the API takes and answers them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints

from laneway.api.http.paging import RequestBody
from laneway.domain.access import (
    LONGEST_LIFE_S,
    MOST_JOB_TYPES,
    MOST_LANES,
    PRINCIPAL_BYTES,
    TOKEN_LIFE_S,
)
from laneway.domain.bounds import BoundsChange, Usual
from laneway.domain.job import PRIORITY_RANGE
from laneway.domain.lane import JobType, LaneName

Permission = Literal[
    "jobs:submit", "jobs:read", "jobs:cancel", "jobs:approve", "jobs:debug",
    "workers:view", "workers:manage", "workers:claim", "workers:declare",
    "schedules:view", "schedules:manage", "metrics:read", "access:manage", "audit:read",
]  # fmt: skip
Permissions = Annotated[list[Permission], Field(min_length=1, max_length=100, fail_fast=True)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=PRINCIPAL_BYTES)]
RoleName = LaneName
Lanes = Annotated[
    list[LaneName],
    Field(min_length=1, max_length=MOST_LANES, fail_fast=True, description="null: any lane"),
]
JobTypes = Annotated[
    list[JobType],
    Field(
        min_length=1,
        max_length=MOST_JOB_TYPES,
        fail_fast=True,
        description="What it may claim; null: any type",
    ),
]
Kind = Literal["person", "service"]
Scope = Literal["own", "workspace", "all"]


class NewPrincipal(RequestBody):
    """A person or service to make known."""

    name: Name
    kind: Kind


class PrincipalChange(RequestBody):
    """Whether a principal may act."""

    name: Name
    disabled: bool


class PrincipalOut(BaseModel):
    """A person or service; a disabled one can do nothing."""

    id: UUID
    name: str
    kind: Kind
    created_at: datetime
    created_by: str
    disabled_at: datetime | None


class NewRole(RequestBody):
    """A named set of permissions."""

    name: RoleName
    permissions: Permissions


class RoleChange(RequestBody):
    """Other permissions for a role."""

    permissions: Permissions


class RoleOut(BaseModel):
    """A named set of permissions."""

    name: str
    permissions: list[str]
    is_seeded: bool = Field(description="Laneway's own: neither changed nor deleted")
    updated_at: datetime
    updated_by: str


class NewGrant(RequestBody):
    """Which role to give whom, and for which jobs."""

    principal: Name
    role: RoleName
    scope: Scope
    workspace: Name | None = Field(default=None, description="Needed by the scope `workspace`")
    lanes: Lanes | None = None
    max_priority: (
        Annotated[int, Field(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1])] | Usual | None
    ) = Field(
        default=None,
        description="The highest priority it may give; null: as before; "
        "`usual`, also of a new grant: 100, or any with workers:manage",
    )
    max_queued: Annotated[int, Field(ge=0, le=2**31 - 1)] | Usual | None = Field(
        default=None,
        description="Jobs of the principal that wait at once; `usual`: 100,000, or any number",
    )
    max_queued_bytes: Annotated[int, Field(ge=0, le=2**53 - 1)] | Usual | None = Field(
        default=None,
        description="Bytes of payloads of those jobs; `usual`: 1 GiB, or any number",
    )
    max_types: Annotated[int, Field(ge=0, le=2**31 - 1)] | Usual | None = Field(
        default=None,
        description="Job types that no worker has published; `usual`: 100, or any number",
    )

    @property
    def bounds(self) -> BoundsChange:
        return BoundsChange(
            self.max_priority, self.max_queued, self.max_queued_bytes, self.max_types
        )


class GrantOut(BaseModel):
    """That a principal has a role, and for which jobs."""

    id: UUID
    principal: str
    role: str
    scope: Scope
    workspace: str | None
    lanes: list[str] | None
    granted_at: datetime
    granted_by: str
    max_priority: int | None = Field(description="null: what is usual for the role")
    max_queued: int | None
    max_queued_bytes: int | None
    max_types: int | None


class TokenRequest(RequestBody):
    """A token to make; it may do what its principal may, narrowed by what is given here."""

    principal: Name
    name: Name = Field(description="What people call it")
    permissions: Permissions | None = None
    lanes: Lanes | None = None
    job_types: JobTypes | None = None
    expires_in: float | None = Field(
        default=TOKEN_LIFE_S, ge=1, le=LONGEST_LIFE_S, description="Seconds; null: never"
    )


class TokenOut(BaseModel):
    """All that is known of a token but its secret."""

    id: UUID
    principal: str
    name: str
    hint: str = Field(description="How its secret begins")
    permissions: list[str] | None
    lanes: list[str] | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    job_types: list[str] | None = Field(description="What it may claim; null: any type")


class NewTokenOut(TokenOut):
    """The only answer that ever holds the secret."""

    secret: str = Field(description="Goes into `Authorization: Bearer …`; nobody can show it again")
