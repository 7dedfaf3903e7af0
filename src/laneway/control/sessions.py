"""Browsers log in by a link that works once; the first one is made when a server first starts."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from laneway.control.access import KIND, SESSION_IDLE_S, locked_principal
from laneway.control.audit import audited
from laneway.domain.access import check_principal_name
from laneway.domain.actor import Actor
from laneway.domain.permissions import Access
from laneway.domain.token import digest_of, new_secret
from laneway.domain.verb_rules import check_words
from laneway.errors import Refused, Unauthenticated
from laneway.store import access, audit
from laneway.store import sessions as store
from laneway.store.database import Database, Runner

LINK_LIFE_S: Final = 10 * 60.0
SESSION_LIFE_S: Final = 12 * 3600.0
FIRST_PRINCIPAL: Final = "admin"
FIRST_ROLE: Final = "platform_admin"

_SPENT: Final = "the link was used, has expired, or never was: ask for a new one"


class NewSession(NamedTuple):
    """What the browser's cookie holds, shown once, and what the session may do."""

    cookie: str
    access: Access


async def create_login_link(db: Database, principal: str, *, by: str) -> str:
    """The secret of a link that opens one session of a person within ten minutes."""
    check_words(by, None)
    check_principal_name(principal, "principal")
    async with audited(db, by, "link.created", KIND, principal) as deed:
        found = await locked_principal(deed, principal)
        if found.is_disabled:
            raise Refused(f"{principal} is disabled")
        if found.kind != "person":
            raise Refused(f"{principal} is a service: it comes with a token, not with a browser")
        secret = await _new_link(deed, found.id)
        if by != principal:
            deed.after = {"acting_for": principal}
    return secret


async def _new_link(runner: Runner, principal_id: UUID) -> str:
    secret = new_secret("link")
    await runner.run(store.create_link(principal_id, secret.digest, LINK_LIFE_S))
    return secret.text


async def open_session(
    db: Database, link: str, *, by: str, replaces: str | None = None
) -> NewSession:
    """Logs the owner of a link in; `replaces` is the cookie the browser had, which ends.

    Nobody is known before: of `by` only door, request and address are kept.
    """
    used = digest_of(link, "link")
    if used is None:
        raise Unauthenticated(_SPENT)
    cookie = new_secret("session")
    old = digest_of(replaces, "session")
    csrf = new_secret("csrf").text
    async with db.transaction() as transaction:
        opening = store.open_session(used, cookie.digest, csrf, SESSION_LIFE_S, old)
        if not await transaction.run(opening):
            raise Unauthenticated(_SPENT)
        found = await transaction.run(store.authenticate(cookie.digest, SESSION_IDLE_S))
        if found is None:
            raise Unauthenticated(_SPENT)
        who = _as(by, found.name, found.principal_id)
        await transaction.run(audit.record(who, "session.opened", KIND, found.name))
    return NewSession(cookie.text, found)


async def close_session(db: Database, cookie: str, *, by: str) -> None:
    """Logs out: the cookie is worth nothing from now on. One that has ended is no error."""
    digest = digest_of(cookie, "session")
    if digest is None:
        return
    async with db.transaction() as transaction:
        owner = await transaction.run(store.close_session(digest))
        if owner is not None:
            principal_id, name = owner
            who = _as(by, name, principal_id)
            await transaction.run(audit.record(who, "session.closed", KIND, name))


def _as(by: str, name: str, principal_id: UUID) -> Actor:
    """The owner of the session, coming the way `by` came."""
    actor = Actor.of(by)
    return Actor(
        name,
        door=actor.door,
        principal_id=principal_id,
        request_id=actor.request_id,
        address=actor.address,
    )


async def bootstrap(db: Database, by: str) -> str | None:
    """Makes the first principal where there is none; answers the secret of its login link.

    None where anybody is known already. Of replicas that start together one makes it.
    """
    check_words(by, None)
    async with db.transaction() as transaction:
        first = await transaction.run(access.create_first(FIRST_PRINCIPAL, by))
        if first is None:
            return None
        await transaction.run(access.grant_role(first.id, FIRST_ROLE, "all", None, None, by))
        secret = await _new_link(transaction, first.id)
        after = {**first.to_dict(), "role": FIRST_ROLE, "scope": "all"}
        await transaction.run(audit.record(by, "principal.created", KIND, first.name, after=after))
    return secret
