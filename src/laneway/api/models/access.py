"""Request and response models of principals, roles, grants and tokens."""

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
        description="Job types it may claim; null: any type",
    ),
]
Kind = Literal["person", "service"]
Scope = Literal["own", "workspace", "all"]


class NewPrincipal(RequestBody):
    """A person or service to create."""

    name: Name
    kind: Kind


class PrincipalChange(RequestBody):
    """Whether a principal is disabled."""

    name: Name
    disabled: bool


class PrincipalOut(BaseModel):
    """A person or service; a disabled one cannot do anything."""

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
    """The new permissions of a role."""

    permissions: Permissions


class RoleOut(BaseModel):
    """A named set of permissions."""

    name: str
    permissions: list[str]
    is_seeded: bool = Field(description="Built in: cannot be changed or deleted")
    updated_at: datetime
    updated_by: str


class NewGrant(RequestBody):
    """A role for a principal, and the jobs it applies to."""

    principal: Name
    role: RoleName
    scope: Scope
    workspace: Name | None = Field(default=None, description="Required with scope `workspace`")
    lanes: Lanes | None = None
    max_priority: (
        Annotated[int, Field(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1])] | Usual | None
    ) = Field(
        default=None,
        description="The highest priority it may set; null: unchanged; "
        "`usual`, the default of a new grant: 100, or any with workers:manage",
    )
    max_queued: Annotated[int, Field(ge=0, le=2**31 - 1)] | Usual | None = Field(
        default=None,
        description="Waiting jobs of the principal; `usual`: 100,000, or any number",
    )
    max_queued_bytes: Annotated[int, Field(ge=0, le=2**53 - 1)] | Usual | None = Field(
        default=None,
        description="Total payload bytes of those jobs; `usual`: 1 GiB, or any number",
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
    """A role that a principal has, and the jobs it applies to."""

    id: UUID
    principal: str
    role: str
    scope: Scope
    workspace: str | None
    lanes: list[str] | None
    granted_at: datetime
    granted_by: str
    max_priority: int | None = Field(description="null: the usual bound of the role")
    max_queued: int | None
    max_queued_bytes: int | None
    max_types: int | None


class TokenRequest(RequestBody):
    """A token to create. It allows what its principal may do, narrowed by these fields."""

    principal: Name
    name: Name = Field(description="A name for people")
    permissions: Permissions | None = None
    lanes: Lanes | None = None
    job_types: JobTypes | None = None
    expires_in: float | None = Field(
        default=TOKEN_LIFE_S, ge=1, le=LONGEST_LIFE_S, description="Seconds; null: never"
    )


class TokenOut(BaseModel):
    """A token without its secret."""

    id: UUID
    principal: str
    name: str
    hint: str = Field(description="The first characters of its secret")
    permissions: list[str] | None
    lanes: list[str] | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    job_types: list[str] | None = Field(description="Job types it may claim; null: any type")


class NewTokenOut(TokenOut):
    """A new token with its secret, which is shown only in this response."""

    secret: str = Field(description="For `Authorization: Bearer …`; it cannot be shown again")
