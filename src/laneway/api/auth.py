"""Who asks: a bearer token, or a browser's session with its CSRF token."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from hashlib import sha256
from secrets import compare_digest
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from laneway.control import access as verbs
from laneway.control import audit
from laneway.domain.actor import Actor
from laneway.domain.permissions import Access
from laneway.errors import Forbidden, Unauthenticated
from laneway.store.database import Database

COOKIE: Final = "laneway_session"
CSRF_HEADER: Final = "X-CSRF-Token"
# A revoked token is refused within this time; five seconds are promised.
FRESH_S: Final = 2.0
_MOST_CACHED: Final = 10_000
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_bearer = HTTPBearer(auto_error=False, description="A token of `laneway tokens create`")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False)


class Gatekeeper:
    """Knows for a moment whom a token belongs to, so that a busy client costs no statement each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[float, Access]] = {}

    async def by_token(self, token: str) -> Access:
        return await self._find(b"t" + sha256(token.encode()).digest(), verbs.authenticate, token)

    async def by_session(self, cookie: str) -> Access:
        return await self._find(_session_key(cookie), verbs.authenticate_session, cookie)

    def forget_session(self, cookie: str) -> None:
        """It has ended here and now."""
        self._known.pop(_session_key(cookie), None)

    async def _find(
        self,
        key: bytes,
        verb: Callable[[Database, str], Coroutine[Any, Any, Access]],
        secret: str,
    ) -> Access:
        now = time.monotonic()
        found = self._known.get(key)
        if found is not None and now < found[0]:
            return found[1]
        self._known.pop(key, None)
        access = await verb(self._database, secret)
        if len(self._known) >= _MOST_CACHED:
            self._known.clear()
        self._known[key] = now + FRESH_S, access
        return access


def _session_key(cookie: str) -> bytes:
    return b"s" + sha256(cookie.encode()).digest()


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated request: what it may do, and as whom its acts are kept."""

    access: Access
    actor: Actor
    database: Database

    async def refuse(
        self, permission: str, action: str, kind: str, name: str | None = None
    ) -> None:
        """Keeps the refusal and raises it."""
        await audit.refuse(self.database, self.actor, action, kind, name)
        raise Forbidden(f"needs the permission {permission}")


async def caller(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_cookie)],
) -> Caller:
    """Whoever asks, or Unauthenticated."""
    gatekeeper: Gatekeeper = request.app.state.gatekeeper
    if bearer is not None:
        access = await gatekeeper.by_token(bearer.credentials)
    elif cookie is not None:
        access = await gatekeeper.by_session(cookie)
        if request.method not in _SAFE:
            _check_csrf(request, access)
    else:
        raise Unauthenticated("a bearer token or a session is needed")
    actor = Actor(
        access.name,
        door="http",
        principal_id=access.principal_id,
        request_id=request.scope["state"]["request_id"],
        address=request.client.host if request.client else None,
    )
    return Caller(access, actor, request.app.state.database)


def _check_csrf(request: Request, access: Access) -> None:
    given = request.headers.get(CSRF_HEADER, "")
    if access.csrf is None or not compare_digest(given.encode(), access.csrf.encode()):
        raise Forbidden(f"a browser's session must send its {CSRF_HEADER}")
    check_origin(request)


def check_origin(request: Request) -> None:
    """Refuses what a page of another site sends."""
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}":
        raise Forbidden("a browser's session is for pages of this server")


def needs(permission: str) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, if the permission covers anything at all."""

    async def permitted(request: Request, who: Annotated[Caller, Depends(caller)]) -> Caller:
        if not who.access.allows(permission):
            route = request.scope["route"].path
            await who.refuse(permission, f"{request.method} {route}", "route", request.url.path)
        return who

    permitted.__name__ = f"needs_{permission.replace(':', '_')}"
    return permitted
