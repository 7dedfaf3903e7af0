"""The operations on principals, roles, grants and tokens.

Callers cannot grant permissions they do not hold: see `control/delegation.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from laneway.domain.access import (
    TOKEN_LIFE_S,
    GrantScope,
    NewToken,
    OnlyJobTypes,
    OnlyLanes,
    Permissions,
    Principal,
    PrincipalKind,
    PrincipalName,
    Role,
    RoleGrant,
    RoleName,
    Token,
    TokenLife,
    TokenName,
    Workspace,
)
from laneway.domain.annotations import Doc
from laneway.domain.bounds import MaxPriority, MaxQueued, MaxQueuedBytes, MaxTypes
from laneway.domain.page import Page
from laneway.operations.operation import Operation, operation

OfPrincipal = Annotated[PrincipalName | None, Doc("Only of this principal")]
OfRole = Annotated[RoleName | None, Doc("Only of this role")]

_manages: Final = partial(operation, permission="access:manage", scope="everywhere")


@_manages("GET", "/admin/principals", command="principals ls")
def list_principals() -> Page[Principal]:
    """List persons and services by name."""


@_manages("POST", "/admin/principals", status=201, body="NewPrincipal", command="principals create")
def create_principal(name: PrincipalName, kind: PrincipalKind) -> Principal:
    """Create a person or service without any permission."""


@_manages(
    "PATCH",
    "/admin/principals",
    may_miss=True,
    body="PrincipalChange",
    command="principals disable",
)
def switch_principal(name: PrincipalName, *, disabled: bool) -> Principal:
    """Disable a principal's tokens and end its sessions; or enable its tokens again.

    The name is in the body because it may contain any character.
    """


@_manages("GET", "/admin/roles", command="roles ls")
def list_roles() -> Page[Role]:
    """List roles by name."""


@_manages("POST", "/admin/roles", status=201, body="NewRole", command="roles create")
def create_role(name: RoleName, permissions: Permissions) -> Role:
    """Create a role from permissions that the caller holds everywhere."""


@_manages("PUT", "/admin/roles/{name}", body="RoleChange", command="roles set")
def change_role(name: RoleName, permissions: Permissions) -> Role:
    """Change the permissions of a role, and so of every principal that has it."""


@_manages("DELETE", "/admin/roles/{name}", status=204, command="roles delete")
def delete_role(name: RoleName) -> None:
    """Delete a role that no principal has."""


@_manages("GET", "/admin/grants", command="roles grants")
def list_grants(*, principal: OfPrincipal = None, role: OfRole = None) -> Page[RoleGrant]:
    """List grants, oldest first."""


@_manages(
    "POST", "/admin/grants", status=201, may_miss=True, body="NewGrant", command="roles grant"
)
def grant_role(
    principal: PrincipalName,
    role: RoleName,
    scope: GrantScope,
    workspace: Workspace = None,
    lanes: OnlyLanes | None = None,
    *,
    max_priority: MaxPriority = None,
    max_queued: MaxQueued = None,
    max_queued_bytes: MaxQueuedBytes = None,
    max_types: MaxTypes = None,
) -> RoleGrant:
    """Grant a role to a principal, or change the bounds of an existing grant.

    Callers cannot grant permissions they do not hold.
    """


@_manages("DELETE", "/admin/grants/{grant_id}", status=204, command="roles revoke")
def revoke_grant(grant_id: UUID) -> None:
    """Revoke a grant."""


@_manages("GET", "/admin/tokens", command="tokens ls")
def list_tokens(*, principal: OfPrincipal = None) -> Page[Token]:
    """List tokens without their secrets, oldest first."""


@_manages(
    "POST",
    "/admin/tokens",
    status=201,
    takes_key=False,
    may_miss=True,
    body="TokenRequest",
    command="tokens create",
)
def create_token(
    principal: PrincipalName,
    name: TokenName,
    permissions: Permissions | None = None,
    lanes: OnlyLanes | None = None,
    expires_in: TokenLife = TOKEN_LIFE_S,
    *,
    job_types: OnlyJobTypes | None = None,
) -> NewToken:
    """Create a token that allows no more than the caller has; only this response has its secret.

    So no response is stored for an Idempotency-Key: the same request again creates another token.
    """


@_manages("POST", "/admin/tokens/{token_id}/revoke", command="tokens revoke")
def revoke_token(token_id: UUID) -> Token:
    """Revoke a token permanently, on every replica within seconds."""


ACCESS: Final[tuple[Operation[Any, Any], ...]] = (
    list_principals, create_principal, switch_principal,
    list_roles, create_role, change_role, delete_role,
    list_grants, grant_role, revoke_grant,
    list_tokens, create_token, revoke_token,
)  # fmt: skip
