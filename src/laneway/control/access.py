"""Principals, roles, grants and tokens.

Sessions of browsers and the first start of a server are in sessions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import Final
from uuid import UUID

from laneway.control.audit import AuditedChange, audited
from laneway.domain.access import (
    PRINCIPAL_BYTES,
    TOKEN_LIFE_S,
    NewToken,
    Principal,
    Role,
    RoleGrant,
    Token,
    check_job_types,
    check_kind,
    check_lanes,
    check_life,
    check_new_principal_name,
    check_principal_name,
    check_role_permissions,
    check_scope,
    check_token_name,
)
from laneway.domain.bounds import NO_BOUNDS, NO_CHANGE, BoundsChange
from laneway.domain.codec import to_json
from laneway.domain.lane import check_lane_name
from laneway.domain.missing import creation, missing
from laneway.domain.permissions import WITHOUT_OWNER, Access
from laneway.domain.text import check_text
from laneway.domain.token import digest_of, new_secret
from laneway.domain.verb_rules import check_actor, check_page
from laneway.errors import InvalidInput, NotFound, Refused, Unauthenticated
from laneway.store import access as store
from laneway.store import lanes as lane_store
from laneway.store import sessions
from laneway.store.database import Database, Runner

KIND: Final = "access"
SESSION_IDLE_S: Final = 2 * 3600.0
PAGE: Final = 50
_LAST_ADMIN: Final = "{} is the last platform_admin: grant that role to another principal first"


# -- authentication ---------------------------------------------------------------------------


async def authenticate(db: Database, token: str) -> Access:
    """The access of a token; Unauthenticated if it is not valid."""
    digest = digest_of(token)
    access = None if digest is None else await db.run(store.authenticate(digest))
    if access is None:
        # Unknown, expired, revoked or disabled: the message must not say which.
        raise Unauthenticated("the token is not valid")
    return access


async def authenticate_session(db: Database, cookie: str) -> Access:
    """The access of a browser's session; Unauthenticated if it has ended."""
    digest = digest_of(cookie, "session")
    access = None if digest is None else await db.run(sessions.authenticate(digest, SESSION_IDLE_S))
    if access is None:
        raise Unauthenticated("the session has ended: log in again")
    return access


async def review(db: Database, digests: Collection[bytes]) -> dict[bytes, Access]:
    """The current access of tokens and sessions, by the digests of their secrets."""
    return await db.run(store.review(digests, SESSION_IDLE_S))


# -- principals -------------------------------------------------------------------------------


async def create_principal(db: Database, name: str, kind: str, *, by: str) -> Principal:
    """Create a person or service, without any role."""
    check_actor(by)
    check_new_principal_name(name)
    chosen = check_kind(kind)
    async with audited(db, by, "principal.created", KIND, name) as change:
        made = await change.run(store.create_principal(name, chosen, by))
        if made is None:
            raise Refused(f"the principal {name} already exists")
        change.after = to_json(made)
    return made


async def list_principals(
    db: Database, *, limit: int = PAGE, after: str | None = None
) -> list[Principal]:
    """Principals by name, starting after the given name."""
    check_page(limit)
    return await db.run(store.list_principals(limit, _optional(after, "after")))


async def disable_principal(db: Database, name: str, *, by: str) -> Principal:
    """Disable a principal: its tokens stop working, and its sessions end."""
    return await _switch(db, name, enabled=False, by=by)


async def enable_principal(db: Database, name: str, *, by: str) -> Principal:
    """Enable a principal: its tokens work again."""
    return await _switch(db, name, enabled=True, by=by)


async def _switch(db: Database, name: str, *, enabled: bool, by: str) -> Principal:
    check_actor(by)
    action = "principal.enabled" if enabled else "principal.disabled"
    async with audited(db, by, action, KIND, check_principal_name(name)) as change:
        found = await locked_principal(change, name)
        if found.is_disabled is not enabled:
            raise Refused(f"{name} is already {'enabled' if enabled else 'disabled'}")
        if not enabled and await _loses_last_admin(change, principal=found.id):
            raise Refused(_LAST_ADMIN.format(name))
        changed = await change.run(store.switch_principal(found.id, enabled=enabled))
        change.before, change.after = to_json(found), to_json(changed)
    return changed


async def _loses_last_admin(
    change: AuditedChange, *, principal: UUID | None = None, grant: UUID | None = None
) -> bool:
    await change.run(store.lock_admins())
    return await change.run(store.loses_last_admin(principal=principal, grant=grant))


async def locked_principal(change: AuditedChange, name: str) -> Principal:
    """The principal of that name, locked until the change is committed."""
    found = await change.run(store.lock_principal(name))
    if found is None:
        raise missing("principal", name)
    return found


# -- roles ------------------------------------------------------------------------------------


async def list_roles(db: Database, *, limit: int = PAGE, after: str | None = None) -> list[Role]:
    """Roles by name, starting after the given name."""
    check_page(limit)
    return await db.run(store.list_roles(limit, _optional(after, "after")))


async def create_role(db: Database, name: str, permissions: Iterable[str], *, by: str) -> Role:
    """Create a role with any set of permissions."""
    check_actor(by)
    check_lane_name(name)
    chosen = check_role_permissions(permissions)
    async with audited(db, by, "role.created", KIND, name) as change:
        made = await change.run(store.create_role(name, chosen, by))
        if made is None:
            raise Refused(f"the role {name} already exists")
        change.after = to_json(made)
    return made


async def change_role(db: Database, name: str, permissions: Iterable[str], *, by: str) -> Role:
    """Change the permissions of a role, for all principals that have it."""
    check_actor(by)
    chosen = check_role_permissions(permissions)
    async with audited(db, by, "role.changed", KIND, check_lane_name(name)) as change:
        found = await _custom_role(change, name, "changed")
        changed = await change.run(store.change_role(name, chosen, by))
        change.before, change.after = to_json(found), to_json(changed)
    return changed


async def delete_role(db: Database, name: str, *, by: str) -> None:
    """Delete a role that no principal has."""
    check_actor(by)
    async with audited(db, by, "role.deleted", KIND, check_lane_name(name)) as change:
        found = await _custom_role(change, name, "deleted")
        if not await change.run(store.delete_role(name)):
            raise Refused(f"the role {name} is granted: revoke its grants first")
        change.before = to_json(found)


async def _custom_role(change: AuditedChange, name: str, verb: str) -> Role:
    found = await change.run(store.lock_role(name))
    if found is None:
        raise missing("role", name)
    if found.is_seeded:
        raise Refused(f"the role {name} is built in and cannot be {verb}")
    return found


# -- grants -----------------------------------------------------------------------------------


async def grant_role(
    db: Database,
    principal: str,
    role: str,
    scope: str,
    workspace: str | None = None,
    lanes: Iterable[str] | None = None,
    *,
    bounds: BoundsChange = NO_CHANGE,
    by: str,
) -> RoleGrant:
    """Grant a role for own jobs, jobs of a workspace, or all jobs; optionally in some lanes.

    If the principal has this grant, its bounds are changed.
    """
    bounds.check()
    check_actor(by)
    check_principal_name(principal, "principal")
    check_lane_name(role, "role")
    checked_scope, place = check_scope(scope, workspace)
    chosen = check_lanes(lanes)
    async with audited(db, by, "role.granted", KIND, principal) as change:
        found = await locked_principal(change, principal)
        given = await change.run(store.lock_role_shared(role))
        if given is None:
            raise missing("role", role)
        if checked_scope == "own" and WITHOUT_OWNER.issuperset(given.permissions):
            raise InvalidInput(
                "scope",
                f"own covers nothing of the role {role}: {', '.join(given.permissions)}"
                " concern objects without a submitter; give the scope workspace or all",
            )
        await _check_known(change, chosen)
        if role == "platform_admin" and bounds.given != NO_BOUNDS:
            await _check_last_admin(change, principal, chosen)
        answer = await change.run(
            store.grant_role(found.id, role, checked_scope, place, chosen, by, bounds)
        )
        if answer is None:
            raise Refused(f"{principal} already has the role {role} there")
        made = answer.grant
        change.workspace, change.after = made.workspace, to_json(made)
        change.before = None if answer.was is None else asdict(answer.was)
    return made


async def _check_last_admin(
    change: AuditedChange, principal: str, lanes: Collection[str] | None
) -> None:
    """Refuse bounds for the last platform_admin who could remove them."""
    for grant in await change.run(
        store.list_grants(PAGE, principal=principal, role="platform_admin")
    ):
        if lanes is not None or grant.scope != "all" or grant.lanes is not None:
            continue
        if await _loses_last_admin(change, grant=grant.id):
            raise Refused(
                f"{principal} is the last platform_admin without bounds, so no one could remove"
                " them: grant that role to another principal first"
            )


async def list_grants(
    db: Database,
    *,
    principal: str | None = None,
    role: str | None = None,
    limit: int = PAGE,
    after: UUID | None = None,
) -> list[RoleGrant]:
    """Grants, oldest first, starting after the given one."""
    check_page(limit)
    named, chosen = _optional(principal, "principal"), _optional(role, "role")
    return await db.run(store.list_grants(limit, principal=named, role=chosen, after=after))


async def revoke_grant(db: Database, grant_id: UUID, *, by: str) -> RoleGrant:
    """Revoke a grant and return it."""
    check_actor(by)
    async with audited(db, by, "role.revoked", KIND) as change:
        if await _loses_last_admin(change, grant=grant_id):
            raise Refused(_LAST_ADMIN.format("its principal"))
        gone = await change.run(store.revoke_grant(grant_id))
        if gone is None:
            raise NotFound(f"no grant {grant_id}")
        change.name, change.workspace = gone.principal, gone.workspace
        change.before = to_json(gone)
    return gone


# -- tokens -----------------------------------------------------------------------------------


async def create_token(
    db: Database,
    principal: str,
    name: str,
    permissions: Iterable[str] | None = None,
    lanes: Iterable[str] | None = None,
    expires_in: float | None = TOKEN_LIFE_S,
    *,
    job_types: Iterable[str] | None = None,
    by: str,
) -> NewToken:
    """Create a token with the permissions of its principal, optionally narrowed.

    `expires_in` is in seconds; None: never. `job_types` narrows what it may claim.
    """
    check_actor(by)
    check_principal_name(principal, "principal")
    check_token_name(name)
    narrowed = None if permissions is None else check_role_permissions(permissions)
    chosen = check_lanes(lanes)
    types = check_job_types(job_types)
    life = check_life(expires_in)
    secret = new_secret()
    async with audited(db, by, "token.created", KIND, principal) as change:
        found = await locked_principal(change, principal)
        if found.is_disabled:
            raise Refused(f"the principal {principal} is disabled: enable it first")
        await _check_known(change, chosen)
        made = await change.run(
            store.create_token(
                found.id, name, secret.hint, secret.digest, narrowed, chosen, life, by, types
            )
        )
        # The creator of the token can act as that principal.
        acting_for = {"acting_for": principal} if by != principal else {}
        change.after = {**to_json(made), **acting_for}
    return NewToken(secret.text, made)


async def list_tokens(
    db: Database,
    *,
    principal: str | None = None,
    limit: int = PAGE,
    after: UUID | None = None,
) -> list[Token]:
    """Tokens without their secrets, oldest first, starting after the given one."""
    check_page(limit)
    named = _optional(principal, "principal")
    return await db.run(store.list_tokens(limit, principal=named, after=after))


async def revoke_token(db: Database, token_id: UUID, *, by: str) -> Token:
    """Revoke a token for good."""
    check_actor(by)
    async with audited(db, by, "token.revoked", KIND) as change:
        found = await change.run(store.lock_token(token_id))
        if found is None:
            raise NotFound(f"no token {token_id}")
        gone = await change.run(store.revoke_token(token_id, by))
        if gone is None:
            raise Refused(f"the token {token_id} is already revoked")
        change.name, change.before, change.after = gone.principal, to_json(found), to_json(gone)
    return gone


async def _check_known(db: Runner, lanes: Iterable[str] | None) -> None:
    """Refuse unknown lanes: a misspelt one would silently grant nothing."""
    if lanes is None:
        return
    known = (await db.run(lane_store.read())).lanes
    for name in lanes:
        if name not in known:
            raise InvalidInput("lanes", f"unknown lane {name}; {creation('lane', name)}")


def _optional(name: str | None, field: str) -> str | None:
    return None if name is None else check_text(name, field, max_bytes=PRINCIPAL_BYTES)
