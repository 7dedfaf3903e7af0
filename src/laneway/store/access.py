"""Principals, roles, grants and tokens, as statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple
from uuid import UUID

from laneway.domain.access import Kind, Principal, Role, RoleGrant, Token
from laneway.domain.bounds import NO_CHANGE, BoundsChange, GrantBounds
from laneway.domain.job import new_job_id
from laneway.domain.permissions import Access, Grant, Scope
from laneway.domain.token import SOON_S, SOON_SHARE, TokenExpiry
from laneway.store.statement import Row, Statement, maybe_row, nothing, one_row, rows_of


class ExpiringToken(NamedTuple):
    """A token in use that expires soon."""

    principal: str
    name: str
    hint: str
    expiry: TokenExpiry


class Granted(NamedTuple):
    """A grant, and its previous bounds if the principal already had it."""

    grant: RoleGrant
    was: GrantBounds | None


def _names(listed: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if listed is None else tuple(listed)


def _role(name: str, permissions: Sequence[str], *rest: Any) -> Role:
    return Role(name, tuple(permissions), *rest)


def _grant(*columns: Any) -> RoleGrant:
    number, principal, role, scope, workspace, lanes, *rest = columns
    return RoleGrant(number, principal, role, scope, workspace, _names(lanes), *rest)


def _token(*columns: Any) -> Token:
    number, principal, name, hint, permissions, lanes, *rest, job_types = columns
    token = Token(number, principal, name, hint, _names(permissions), _names(lanes), *rest)
    return token if job_types is None else replace(token, job_types=_names(job_types))


# -- authentication ---------------------------------------------------------------------------


def authenticate(digest: bytes) -> Statement[Access | None]:
    """The principal of a token and its permissions; None for an invalid token."""
    return Statement("access/authenticate_token", _by_token, {"digest": digest})


def _by_token(rows: list[Row]) -> Access | None:
    if not rows:
        return None
    principal_id, name, kind, permissions, lanes, job_types, *expiry = rows[0][:9]
    return Access(
        principal_id,
        name,
        kind,
        grants_of(rows, 9),
        token_permissions=None if permissions is None else frozenset(permissions),
        token_lanes=None if lanes is None else frozenset(lanes),
        token_job_types=None if job_types is None else frozenset(job_types),
        token_expiry=_expiry(expiry),
    )


def _expiry(columns: Sequence[Any]) -> TokenExpiry | None:
    return None if columns[0] is None else TokenExpiry(*columns)


def review(digests: Collection[bytes], idle_s: float) -> Statement[dict[bytes, Access]]:
    """The access of each valid token or session; invalid digests are left out."""

    def decode(rows: list[Row]) -> dict[bytes, Access]:
        by_digest: dict[bytes, list[Row]] = {}
        for digest, *rest in rows:
            by_digest.setdefault(bytes(digest), []).append(rest)
        accesses = {digest: _by_token(each) for digest, each in by_digest.items()}
        return {digest: access for digest, access in accesses.items() if access is not None}

    params = {"digests": list(digests), "idle_s": idle_s}
    return Statement("access/review_access", decode, params)


def grants_of(rows: list[Row], start: int) -> tuple[Grant, ...]:
    """The grants in the columns from `start` on; a row of nulls holds none."""
    columns = (row[start : start + 8] for row in rows)
    return tuple(
        Grant(
            frozenset(permissions),
            scope,
            workspace,
            None if lanes is None else frozenset(lanes),
            GrantBounds(*bounds),
        )
        for permissions, scope, workspace, lanes, *bounds in columns
        if permissions is not None
    )


# -- principals -------------------------------------------------------------------------------


def create_principal(name: str, kind: Kind, by: str) -> Statement[Principal | None]:
    """Creates a principal; None when the name is taken."""
    params = {"id": new_job_id(), "name": name, "kind": kind, "by": by}
    return Statement("access/create_principal", maybe_row(Principal), params)


def _is_last(rows: list[Row]) -> bool:
    before, after = rows[0]
    return bool(before) and not after


def lock_admins() -> Statement[None]:
    """Locks out other changes of platform_admin until the transaction ends."""
    return Statement("access/lock_admins", nothing)


def loses_last_admin(
    *, principal: UUID | None = None, grant: UUID | None = None
) -> Statement[bool]:
    """Whether no platform_admin would be left without them; exact after `lock_admins`."""
    params = {"principal": principal, "grant": grant}
    return Statement("access/count_admins", _is_last, params)


def create_first_principal(name: str, by: str) -> Statement[Principal | None]:
    """Creates the first person; None when any principal exists."""
    params = {"id": new_job_id(), "name": name, "by": by}
    return Statement("access/create_first_principal", maybe_row(Principal), params)


def list_principals(limit: int, after: str | None = None) -> Statement[list[Principal]]:
    """Principals by name."""
    return Statement("access/list_principals", rows_of(Principal), {"limit": limit, "after": after})


def lock_principal(name: str) -> Statement[Principal | None]:
    """Reads a principal and locks it until the transaction ends."""
    return Statement("access/lock_principal", maybe_row(Principal), {"name": name})


def switch_principal(principal_id: UUID, *, enabled: bool) -> Statement[Principal]:
    """Disables or enables a locked principal."""
    params = {"id": principal_id, "enabled": enabled}
    return Statement("access/switch_principal", one_row(Principal), params)


# -- roles ------------------------------------------------------------------------------------


def create_role(name: str, permissions: Sequence[str], by: str) -> Statement[Role | None]:
    """Creates a role; None when the name is taken."""
    params = {"name": name, "permissions": list(permissions), "by": by}
    return Statement("access/create_role", maybe_row(_role), params)


def list_roles(limit: int, after: str | None = None) -> Statement[list[Role]]:
    """Roles by name."""
    return Statement("access/list_roles", rows_of(_role), {"limit": limit, "after": after})


def lock_role(name: str) -> Statement[Role | None]:
    """Reads a role and blocks its grant, change and deletion until the transaction ends."""
    return Statement("access/lock_role", maybe_row(_role), {"name": name})


def lock_role_shared(name: str) -> Statement[Role | None]:
    """Reads a role; it cannot be deleted until the transaction ends."""
    return Statement("access/lock_role_shared", maybe_row(_role), {"name": name})


def change_role(name: str, permissions: Sequence[str], by: str) -> Statement[Role]:
    """Replaces the permissions of a locked role that is not seeded."""
    params = {"name": name, "permissions": list(permissions), "by": by}
    return Statement("access/change_role", one_row(_role), params)


def delete_role(name: str) -> Statement[bool]:
    """Deletes a role; False when it is seeded, missing or granted."""
    return Statement("access/delete_role", bool, {"name": name})


# -- grants -----------------------------------------------------------------------------------


def grant_role(
    principal_id: UUID,
    role: str,
    scope: Scope,
    workspace: str | None,
    lanes: Sequence[str] | None,
    by: str,
    bounds: BoundsChange = NO_CHANGE,
) -> Statement[Granted | None]:
    """Grants a role or changes the bounds of an existing grant; None when nothing changes."""

    def decode(rows: list[Row]) -> Granted | None:
        if not rows:
            return None
        *columns, was = rows[0]
        return Granted(_grant(*columns), None if was is None else GrantBounds(*was))

    params = {
        "id": new_job_id(),
        "principal": principal_id,
        "role": role,
        "scope": scope,
        "workspace": workspace,
        "lanes": None if lanes is None else list(lanes),
        "by": by,
        "cleared": bounds.cleared,
        **asdict(bounds.given),
    }
    return Statement("access/grant_role", decode, params)


def list_grants(
    limit: int,
    *,
    principal: str | None = None,
    role: str | None = None,
    after: UUID | None = None,
) -> Statement[list[RoleGrant]]:
    """Grants, oldest first."""
    params = {"limit": limit, "principal": principal, "role": role, "after": after}
    return Statement("access/list_grants", rows_of(_grant), params)


def revoke_grant(grant_id: UUID) -> Statement[RoleGrant | None]:
    """Revokes a grant; None when it does not exist."""
    return Statement("access/revoke_grant", maybe_row(_grant), {"id": grant_id})


# -- tokens -----------------------------------------------------------------------------------


def create_token(
    principal_id: UUID,
    name: str,
    hint: str,
    digest: bytes,
    permissions: Sequence[str] | None,
    lanes: Sequence[str] | None,
    life_s: float | None,
    by: str,
    job_types: Sequence[str] | None = None,
) -> Statement[Token]:
    """Stores a new token."""
    params = {
        "id": new_job_id(),
        "principal": principal_id,
        "name": name,
        "hint": hint,
        "digest": digest,
        "permissions": None if permissions is None else list(permissions),
        "lanes": None if lanes is None else list(lanes),
        "life_s": life_s,
        "by": by,
        "job_types": None if job_types is None else list(job_types),
    }
    return Statement("access/create_token", one_row(_token), params)


def list_tokens(
    limit: int, *, principal: str | None = None, after: UUID | None = None
) -> Statement[list[Token]]:
    """Tokens, oldest first."""
    params = {"limit": limit, "principal": principal, "after": after}
    return Statement("access/list_tokens", rows_of(_token), params)


def list_expiring_tokens(limit: int) -> Statement[list[ExpiringToken]]:
    """Tokens in use that expire soon, the first to expire first."""

    def decode(rows: list[Row]) -> list[ExpiringToken]:
        return [
            ExpiringToken(principal, name, hint, TokenExpiry(*expiry))
            for principal, name, hint, *expiry in rows
        ]

    params = {"limit": limit, "soon_s": SOON_S, "share": SOON_SHARE}
    return Statement("access/list_expiring_tokens", decode, params)


def lock_token(token_id: UUID) -> Statement[Token | None]:
    """Reads a token and locks it until the transaction ends."""
    return Statement("access/lock_token", maybe_row(_token), {"id": token_id})


def revoke_token(token_id: UUID, by: str) -> Statement[Token | None]:
    """Revokes a token; None when it is already invalid."""
    return Statement("access/revoke_token", maybe_row(_token), {"id": token_id, "by": by})
