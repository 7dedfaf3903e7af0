"""Sessions of browsers, opened by a link that works once; the first start makes the first link."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from laneway.control.access import KIND, SESSION_IDLE_S, locked_principal
from laneway.control.audit import audited
from laneway.domain.access import check_principal_name
from laneway.domain.actor import Actor
from laneway.domain.codec import to_json
from laneway.domain.permissions import Access
from laneway.domain.token import digest_of, new_secret
from laneway.domain.verb_rules import check_actor
from laneway.errors import Refused, Unauthenticated
from laneway.store import access, audit
from laneway.store import sessions as store
from laneway.store.database import Database, Runner

LINK_LIFE_S: Final = 10 * 60.0
SESSION_LIFE_S: Final = 12 * 3600.0
FIRST_PRINCIPAL: Final = "admin"
FIRST_ROLE: Final = "platform_admin"

_INVALID_LINK: Final = "the link was used, has expired or is unknown: ask for a new one"


class NewSession(NamedTuple):
    """The value of the browser's cookie, shown once, and the access of the session."""

    cookie: str
    access: Access


async def create_login_link(db: Database, principal: str, *, by: str) -> str:
    """The secret of a link that opens one session of a person within ten minutes."""
    check_actor(by)
    check_principal_name(principal, "principal")
    async with audited(db, by, "link.created", KIND, principal) as change:
        found = await locked_principal(change, principal)
        if found.is_disabled:
            raise Refused(f"the principal {principal} is disabled: enable it first")
        if found.kind != "person":
            raise Refused(f"{principal} is a service: it uses a token, not a browser")
        secret = await _new_link(change, found.id)
        if by != principal:
            change.after = {"acting_for": principal}
    return secret


async def _new_link(runner: Runner, principal_id: UUID) -> str:
    secret = new_secret("link")
    await runner.run(store.create_link(principal_id, secret.digest, LINK_LIFE_S))
    return secret.text


async def open_session(
    db: Database, link: str, *, by: str, replaces: str | None = None
) -> NewSession:
    """Log the owner of a link in; the session of the cookie `replaces` ends.

    The name in `by` is not used: only its door, request and address are recorded.
    """
    used = digest_of(link, "link")
    if used is None:
        raise Unauthenticated(_INVALID_LINK)
    cookie = new_secret("session")
    old = digest_of(replaces, "session")
    csrf = new_secret("csrf").text
    async with db.transaction() as transaction:
        opening = store.open_session(used, cookie.digest, csrf, SESSION_LIFE_S, old)
        if not await transaction.run(opening):
            raise Unauthenticated(_INVALID_LINK)
        found = await transaction.run(store.authenticate(cookie.digest, SESSION_IDLE_S))
        if found is None:
            raise Unauthenticated(_INVALID_LINK)
        actor = _as_owner(by, found.name, found.principal_id)
        await transaction.run(audit.record(actor, "session.opened", KIND, found.name))
    return NewSession(cookie.text, found)


async def close_session(db: Database, cookie: str, *, by: str) -> None:
    """Log out: the cookie stops working. A session that has ended is not an error."""
    digest = digest_of(cookie, "session")
    if digest is None:
        return
    async with db.transaction() as transaction:
        owner = await transaction.run(store.close_session(digest))
        if owner is not None:
            principal_id, name = owner
            actor = _as_owner(by, name, principal_id)
            await transaction.run(audit.record(actor, "session.closed", KIND, name))


def _as_owner(by: str, name: str, principal_id: UUID) -> Actor:
    """The owner of the session, with the door, request and address of `by`."""
    actor = Actor.of(by)
    return Actor(
        name,
        door=actor.door,
        principal_id=principal_id,
        request_id=actor.request_id,
        address=actor.address,
    )


async def bootstrap(db: Database, by: str) -> str | None:
    """Create the first principal if there is none; return the secret of its login link.

    None if a principal exists. If several replicas start together, one creates it.
    """
    check_actor(by)
    async with db.transaction() as transaction:
        first = await transaction.run(access.create_first_principal(FIRST_PRINCIPAL, by))
        if first is None:
            return None
        await transaction.run(access.grant_role(first.id, FIRST_ROLE, "all", None, None, by))
        secret = await _new_link(transaction, first.id)
        after = {**to_json(first), "role": FIRST_ROLE, "scope": "all"}
        await transaction.run(audit.record(by, "principal.created", KIND, first.name, after=after))
    return secret
