"""Calls about principals, roles, grants, tokens, the audit and the server itself."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from laneway.domain.access import TOKEN_LIFE_S, NewToken, Principal, Role, RoleGrant, Token
from laneway.domain.audit import AuditEntry, AuditFilter
from laneway.domain.bounds import Usual
from laneway.domain.lane import check_lane_name
from laneway.http import decode
from laneway.http.call import (
    Call,
    Listing,
    encoded,
    in_path,
    listed,
    once,
    query_params,
    without_none,
)
from laneway.http.models import Health, Me, Readiness

_ROLES = "/admin/roles"


def get_me() -> Call[Me]:
    """Return the principal of the token and its permissions."""
    return Call("GET", "/me", decode.body(Me))


def get_health() -> Call[Health]:
    """Check that the server responds."""
    return Call("GET", "/healthz", decode.body(Health))


def get_readiness() -> Call[Readiness]:
    """Check that the server reaches its database and that the schema fits."""
    return Call("GET", "/readyz", decode.body(Readiness))


# -- principals -------------------------------------------------------------------------------


def list_principals() -> Listing[Principal]:
    """List persons and services by name."""
    return Listing("/admin/principals", lambda item: decode.read(Principal, item))


def create_principal(name: str, kind: str) -> Call[Principal]:
    """Create a person or service, without permissions."""
    body = encoded({"name": name, "kind": kind})
    return once(Call("POST", "/admin/principals", decode.body(Principal), (), body))


def switch_principal(name: str, *, disabled: bool) -> Call[Principal]:
    """Disable or enable a principal. Disabling also ends its sessions for good."""
    body = encoded({"name": name, "disabled": disabled})
    return Call("PATCH", "/admin/principals", decode.body(Principal), (), body)


# -- roles and grants -------------------------------------------------------------------------


def list_roles() -> Listing[Role]:
    """List roles by name."""
    return Listing(_ROLES, lambda item: decode.read(Role, item))


def create_role(name: str, permissions: Iterable[str]) -> Call[Role]:
    """Create a role from permissions that the caller holds everywhere."""
    body = encoded({"name": name, "permissions": listed(permissions, "permissions")})
    return once(Call("POST", _ROLES, decode.body(Role), (), body))


def change_role(name: str, permissions: Iterable[str]) -> Call[Role]:
    """Replace the permissions of a role, for every principal that has it."""
    body = encoded({"permissions": listed(permissions, "permissions")})
    return Call("PUT", _role(name), decode.body(Role), (), body)


def delete_role(name: str) -> Call[None]:
    """Delete a role that no principal has."""
    return Call("DELETE", _role(name), decode.nothing)


def _role(name: str) -> str:
    return f"{_ROLES}/{in_path(check_lane_name(name))}"


def list_grants(*, principal: str | None = None, role: str | None = None) -> Listing[RoleGrant]:
    """List grants of roles to principals, oldest first."""
    given = query_params({"principal": principal, "role": role})
    return Listing("/admin/grants", lambda item: decode.read(RoleGrant, item), given)


def grant_role(
    principal: str,
    role: str,
    scope: str,
    workspace: str | None = None,
    lanes: Iterable[str] | None = None,
    *,
    max_priority: int | Usual | None = None,
    max_queued: int | Usual | None = None,
    max_queued_bytes: int | Usual | None = None,
    max_types: int | Usual | None = None,
) -> Call[RoleGrant]:
    """Grant a role to a principal, within the caller's own permissions.

    Granting an existing role again updates the given bounds; `usual` removes a bound.
    """
    body = without_none(
        {
            "principal": principal,
            "role": role,
            "scope": scope,
            "workspace": workspace,
            "lanes": None if lanes is None else listed(lanes, "lanes"),
            "max_priority": max_priority,
            "max_queued": max_queued,
            "max_queued_bytes": max_queued_bytes,
            "max_types": max_types,
        }
    )
    return once(Call("POST", "/admin/grants", decode.body(RoleGrant), (), encoded(body)))


def revoke_grant(grant_id: UUID) -> Call[None]:
    """Revoke a grant."""
    return Call("DELETE", f"/admin/grants/{in_path(grant_id)}", decode.nothing)


# -- tokens -----------------------------------------------------------------------------------


def list_tokens(*, principal: str | None = None) -> Listing[Token]:
    """List tokens without their secrets, oldest first."""
    given = query_params({"principal": principal})
    return Listing("/admin/tokens", lambda item: decode.read(Token, item), given)


def create_token(
    principal: str,
    name: str,
    permissions: Iterable[str] | None = None,
    lanes: Iterable[str] | None = None,
    expires_in: float | None = TOKEN_LIFE_S,
    *,
    job_types: Iterable[str] | None = None,
) -> Call[NewToken]:
    """Create a token, within the caller's permissions. Only this response holds its secret."""
    body: dict[str, object] = {
        "principal": principal,
        "name": name,
        "permissions": None if permissions is None else listed(permissions, "permissions"),
        "lanes": None if lanes is None else listed(lanes, "lanes"),
        "expires_in": expires_in,
    }
    if job_types is not None:
        body["job_types"] = listed(job_types, "job_types")
    path = "/admin/tokens"
    return Call("POST", path, lambda response: decode.new_token(response.body), (), encoded(body))


def revoke_token(token_id: UUID) -> Call[Token]:
    """Revoke a token for good; every replica refuses it within seconds."""
    path = f"/admin/tokens/{in_path(token_id)}/revoke"
    return once(Call("POST", path, decode.body(Token)))


# -- audit ------------------------------------------------------------------------------------


def list_acts(wanted: AuditFilter | None = None) -> Listing[AuditEntry]:
    """List audit entries that match every given field, newest first."""
    names = (
        "actor",
        "door",
        "action",
        "kind",
        "name",
        "workspace",
        "outcome",
        "since",
        "newer_than",
    )
    chosen = wanted or AuditFilter()
    given = query_params({name: getattr(chosen, name) for name in names})
    return Listing("/admin/audit", lambda item: decode.read(AuditEntry, item), given)
