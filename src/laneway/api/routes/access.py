"""Principals, roles, grants and tokens. Callers cannot grant permissions they do not hold."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response, status

from laneway.api.http.auth import Caller, action_of
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.paging import Cursor, Limit, PageOut, uuid_of
from laneway.api.http.problems import errors
from laneway.api.http.responses import render
from laneway.api.models.access import (
    GrantOut,
    Name,
    NewGrant,
    NewPrincipal,
    NewRole,
    NewTokenOut,
    PrincipalChange,
    PrincipalOut,
    RoleChange,
    RoleName,
    RoleOut,
    TokenOut,
    TokenRequest,
)
from laneway.control import access as verbs
from laneway.control import delegation
from laneway.store.database import Database

router = APIRouter(prefix="/admin", tags=["access"])

Keeper = Annotated[Caller, Depends(everywhere("access:manage"))]
OfPrincipal = Annotated[Name | None, Query(description="Only of this principal")]
OfRole = Annotated[RoleName | None, Query(description="Only of this role")]


async def _check(who: Caller, request: Request, excess: str | None, name: str) -> None:
    """Refuse a caller that would grant a permission it does not hold; the audit records it."""
    if excess is not None:
        await who.refuse(
            f"{excess} as far as it would be granted", action_of(request), "access", name
        )


def _page(found: list[Any], limit: int, key: str) -> dict[str, object]:
    following = str(getattr(found[-1], key)) if len(found) == limit else None
    return {"items": [each.to_dict() for each in found], "next_cursor": following}


# -- principals -------------------------------------------------------------------------------


@router.get(
    "/principals",
    operation_id="list_principals",
    response_model=PageOut[PrincipalOut],
    responses=errors(),
)
async def list_principals(who: Keeper, limit: Limit = 50, cursor: Cursor = None) -> Any:
    """List persons and services by name."""
    found = await verbs.list_principals(who.database, limit=limit, after=cursor)
    return _page(found, limit, "name")


@router.post(
    "/principals",
    operation_id="create_principal",
    response_model=PrincipalOut,
    status_code=status.HTTP_201_CREATED,
    responses=errors(409, 413),
)
async def create_principal(who: Keeper, new: NewPrincipal, guard: Idempotent) -> Response:
    """Create a person or service without any permission."""

    async def apply(db: Database) -> Response:
        made = await verbs.create_principal(db, new.name, new.kind, by=who.actor)
        return render(PrincipalOut, made.to_dict(), 201)

    return await guard.run(apply)


@router.patch(
    "/principals",
    operation_id="switch_principal",
    response_model=PrincipalOut,
    responses=errors(404, 409, 413),
)
async def switch_principal(who: Keeper, request: Request, change: PrincipalChange) -> Any:
    """Disable a principal's tokens and end its sessions; or enable its tokens again.

    The name is in the body because it may contain any character.
    """
    name = change.name
    if change.disabled:
        return (await verbs.disable_principal(who.database, name, by=who.actor)).to_dict()
    excess = await delegation.excess_of_token(who.database, who.access, name)
    await _check(who, request, excess, name)
    return (await verbs.enable_principal(who.database, name, by=who.actor)).to_dict()


# -- roles ------------------------------------------------------------------------------------


@router.get(
    "/roles", operation_id="list_roles", response_model=PageOut[RoleOut], responses=errors()
)
async def list_roles(who: Keeper, limit: Limit = 50, cursor: Cursor = None) -> Any:
    """List roles by name."""
    return _page(await verbs.list_roles(who.database, limit=limit, after=cursor), limit, "name")


@router.post(
    "/roles",
    operation_id="create_role",
    response_model=RoleOut,
    status_code=status.HTTP_201_CREATED,
    responses=errors(409, 413),
)
async def create_role(who: Keeper, request: Request, new: NewRole, guard: Idempotent) -> Response:
    """Create a role from permissions that the caller holds everywhere."""
    await _check(who, request, delegation.excess_of_role(who.access, new.permissions), new.name)

    async def apply(db: Database) -> Response:
        made = await verbs.create_role(db, new.name, new.permissions, by=who.actor)
        return render(RoleOut, made.to_dict(), 201)

    return await guard.run(apply)


@router.put(
    "/roles/{name}",
    operation_id="change_role",
    response_model=RoleOut,
    responses=errors(404, 409, 413),
)
async def change_role(who: Keeper, request: Request, name: str, change: RoleChange) -> Any:
    """Change the permissions of a role, and so of every principal that has it."""
    await _check(who, request, delegation.excess_of_role(who.access, change.permissions), name)
    changed = await verbs.change_role(who.database, name, change.permissions, by=who.actor)
    return changed.to_dict()


@router.delete(
    "/roles/{name}",
    operation_id="delete_role",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=errors(404, 409),
)
async def delete_role(who: Keeper, name: str) -> None:
    """Delete a role that no principal has."""
    await verbs.delete_role(who.database, name, by=who.actor)


# -- grants -----------------------------------------------------------------------------------


@router.get(
    "/grants", operation_id="list_grants", response_model=PageOut[GrantOut], responses=errors()
)
async def list_grants(
    who: Keeper,
    principal: OfPrincipal = None,
    role: OfRole = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Any:
    """List grants, oldest first."""
    found = await verbs.list_grants(
        who.database, principal=principal, role=role, limit=limit, after=uuid_of(cursor)
    )
    return _page(found, limit, "id")


@router.post(
    "/grants",
    operation_id="grant_role",
    response_model=GrantOut,
    status_code=status.HTTP_201_CREATED,
    responses=errors(404, 409, 413),
)
async def grant_role(who: Keeper, request: Request, new: NewGrant, guard: Idempotent) -> Response:
    """Grant a role to a principal, or change the bounds of an existing grant.

    Callers cannot grant permissions they do not hold.
    """
    given = (new.principal, new.role, new.scope, new.workspace, new.lanes)
    excess = await delegation.excess_of_grant(who.database, who.access, *given, new.bounds)
    await _check(who, request, excess, new.principal)

    async def apply(db: Database) -> Response:
        made = await verbs.grant_role(db, *given, bounds=new.bounds, by=who.actor)
        return render(GrantOut, made.to_dict(), 201)

    return await guard.run(apply)


@router.delete(
    "/grants/{grant_id}",
    operation_id="revoke_grant",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=errors(404),
)
async def revoke_grant(who: Keeper, grant_id: UUID) -> None:
    """Revoke a grant."""
    await verbs.revoke_grant(who.database, grant_id, by=who.actor)


# -- tokens -----------------------------------------------------------------------------------


@router.get(
    "/tokens", operation_id="list_tokens", response_model=PageOut[TokenOut], responses=errors()
)
async def list_tokens(
    who: Keeper, principal: OfPrincipal = None, limit: Limit = 50, cursor: Cursor = None
) -> Any:
    """List tokens without their secrets, oldest first."""
    found = await verbs.list_tokens(
        who.database, principal=principal, limit=limit, after=uuid_of(cursor)
    )
    return _page(found, limit, "id")


@router.post(
    "/tokens",
    operation_id="create_token",
    response_model=NewTokenOut,
    status_code=status.HTTP_201_CREATED,
    responses=errors(404, 409, 413),
)
async def create_token(who: Keeper, request: Request, new: TokenRequest) -> Any:
    """Create a token that allows no more than the caller has; only this response has its secret.

    So no response is stored for an Idempotency-Key: the same request again creates another token.
    """
    excess = await delegation.excess_of_token(
        who.database, who.access, new.principal, new.permissions, new.lanes, new.job_types
    )
    await _check(who, request, excess, new.principal)
    made = await verbs.create_token(
        who.database,
        new.principal,
        new.name,
        new.permissions,
        new.lanes,
        new.expires_in,
        job_types=new.job_types,
        by=who.actor,
    )
    return {**made.token.to_dict(), "secret": made.secret}


@router.post(
    "/tokens/{token_id}/revoke",
    operation_id="revoke_token",
    response_model=TokenOut,
    responses=errors(404, 409, 413),
)
async def revoke_token(who: Keeper, token_id: UUID, guard: Idempotent) -> Response:
    """Revoke a token permanently, on every replica within seconds."""

    async def apply(db: Database) -> Response:
        revoked = await verbs.revoke_token(db, token_id, by=who.actor)
        return render(TokenOut, revoked.to_dict())

    return await guard.run(apply)
