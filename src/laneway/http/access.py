"""Calls about principals, roles, grants, tokens and the audit, and about the server itself."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from laneway.domain.access import TOKEN_LIFE_S, NewToken, Principal, Role, RoleGrant, Token
from laneway.domain.audit import AuditEntry, AuditFilter
from laneway.domain.bounds import Usual
from laneway.domain.lane import check_lane_name
from laneway.http import decode
from laneway.http.call import Call, Listing, encoded, in_path, listed, once, said, words
from laneway.http.models import Health, Me, Readiness

_ROLES = "/admin/roles"


def get_me() -> Call[Me]:
    """Whoever the token belongs to, and what it may do."""
    return Call("GET", "/me", decode.body(Me))


def get_health() -> Call[Health]:
    """Whether the server answers."""
    return Call("GET", "/healthz", decode.body(Health))


def get_readiness() -> Call[Readiness]:
    """Whether the server reaches its database, with the schema it needs."""
    return Call("GET", "/readyz", decode.body(Readiness))


# -- principals -------------------------------------------------------------------------------


def list_principals() -> Listing[Principal]:
    """Persons and services by name."""
    return Listing("/admin/principals", lambda item: decode.read(Principal, item))


def create_principal(name: str, kind: str) -> Call[Principal]:
    """Makes a person or service known; it may do nothing yet."""
    body = encoded({"name": name, "kind": kind})
    return once(Call("POST", "/admin/principals", decode.body(Principal), (), body))


def switch_principal(name: str, *, disabled: bool) -> Call[Principal]:
    """Ends the power of its tokens, and its sessions for good; or gives it back."""
    body = encoded({"name": name, "disabled": disabled})
    return Call("PATCH", "/admin/principals", decode.body(Principal), (), body)


# -- roles and grants -------------------------------------------------------------------------


def list_roles() -> Listing[Role]:
    """Roles by name."""
    return Listing(_ROLES, lambda item: decode.read(Role, item))


def create_role(name: str, permissions: Iterable[str]) -> Call[Role]:
    """A role of any set of permissions that the caller has everywhere."""
    body = encoded({"name": name, "permissions": listed(permissions, "permissions")})
    return once(Call("POST", _ROLES, decode.body(Role), (), body))


def change_role(name: str, permissions: Iterable[str]) -> Call[Role]:
    """Gives a role other permissions, and with it everybody who has it."""
    body = encoded({"permissions": listed(permissions, "permissions")})
    return Call("PUT", _role(name), decode.body(Role), (), body)


def delete_role(name: str) -> Call[None]:
    """Deletes a role that nobody has."""
    return Call("DELETE", _role(name), decode.nothing)


def _role(name: str) -> str:
    return f"{_ROLES}/{in_path(check_lane_name(name))}"


def list_grants(*, principal: str | None = None, role: str | None = None) -> Listing[RoleGrant]:
    """Who has which role where, oldest first."""
    given = words({"principal": principal, "role": role})
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
    """Gives a principal a role, no further than the caller's own permissions reach.

    One that it has there gets the bounds that are given; `usual` takes a bound off.
    """
    body = said(
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
    """Takes a role away."""
    return Call("DELETE", f"/admin/grants/{in_path(grant_id)}", decode.nothing)


# -- tokens -----------------------------------------------------------------------------------


def list_tokens(*, principal: str | None = None) -> Listing[Token]:
    """Tokens without their secrets, oldest first."""
    given = words({"principal": principal})
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
    """A token that may do no more than the caller; only this answer ever holds its secret."""
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
    return Call("POST", path, lambda answer: decode.new_token(answer.body), (), encoded(body))


def revoke_token(token_id: UUID) -> Call[Token]:
    """Ends a token's power for good, at every replica within seconds."""
    path = f"/admin/tokens/{in_path(token_id)}/revoke"
    return once(Call("POST", path, decode.body(Token)))


# -- audit ------------------------------------------------------------------------------------


def list_acts(wanted: AuditFilter | None = None) -> Listing[AuditEntry]:
    """Acts that match all that is given, newest first."""
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
    asked = wanted or AuditFilter()
    given = words({name: getattr(asked, name) for name in names})
    return Listing("/admin/audit", lambda item: decode.read(AuditEntry, item), given)
