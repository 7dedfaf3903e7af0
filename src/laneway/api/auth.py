"""Who asks: a bearer token, or a browser's session with its CSRF token.

It is found out before any of the body is read: `admit` does it for every route by what the route
depends on, and the dependencies answer what was found.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass
from hashlib import sha256
from secrets import compare_digest
from typing import Annotated, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.types import Scope

from laneway.api.throttle import Throttle
from laneway.control import access as verbs
from laneway.control import audit
from laneway.domain.actor import Actor, Door
from laneway.domain.permissions import Access
from laneway.errors import Forbidden, Unauthenticated
from laneway.store.database import Database

COOKIE: Final = "laneway_session"
CSRF_HEADER: Final = "X-CSRF-Token"
# What a client of ours says it is; only the audit believes it.
DOOR_HEADER: Final = "Laneway-Door"
_DOORS: Final[dict[str, Door]] = {"cli": "cli", "mcp": "mcp", "python": "python"}
# A revoked token is refused within this time; five seconds are promised.
FRESH_S: Final = 2.0
_MOST_CACHED: Final = 10_000
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# An application that this one is mounted in keeps what it likes beside them.
_CALLER: Final = "laneway.caller"
_PASSED: Final = "laneway.passed"

T = TypeVar("T")

_bearer = HTTPBearer(auto_error=False, description="A token of `laneway tokens create`")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False)


class Gatekeeper:
    """Knows for a moment whom a token belongs to, so that a busy client costs no statement each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[float, Access]] = {}
        self._looking: dict[bytes, asyncio.Future[Access]] = {}

    async def by_token(self, token: str) -> Access:
        return await self._find(token_key(token), verbs.authenticate, token)

    async def by_session(self, cookie: str) -> Access:
        return await self._find(session_key(cookie), verbs.authenticate_session, cookie)

    def has_met(self, key: bytes) -> bool:
        """Whether it had power when it last came here, if that is not long ago."""
        return key in self._known

    async def review(self, digests: Collection[bytes]) -> dict[bytes, Access]:
        """Of secrets that open streams came with, those that have power now."""
        return await verbs.review(self._database, digests)

    def forget_session(self, cookie: str) -> None:
        """It has ended here and now."""
        self._known.pop(session_key(cookie), None)

    async def _find(
        self,
        key: bytes,
        verb: Callable[[Database, str], Coroutine[Any, Any, Access]],
        secret: str,
    ) -> Access:
        found = self._known.get(key)
        if found is not None and time.monotonic() < found[0]:
            return found[1]
        looking = self._looking.get(key)
        if looking is None:
            looking = asyncio.ensure_future(self._look(key, verb(self._database, secret)))
            self._looking[key] = looking
            looking.add_done_callback(lambda _: self._looking.pop(key))
        # Many who come at once with one token wait for one look; who leaves takes nobody along.
        return await asyncio.shield(looking)

    async def _look(self, key: bytes, asked: Coroutine[Any, Any, Access]) -> Access:
        began = time.monotonic()
        try:
            access = await asked
        except Unauthenticated:
            self._known.pop(key, None)
            raise
        if len(self._known) >= _MOST_CACHED:
            self._known.clear()
        self._known[key] = began + FRESH_S, access
        return access


def token_key(token: str) -> bytes:
    return b"t" + sha256(token.encode()).digest()


def session_key(cookie: str) -> bytes:
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
    bearer: Annotated[object, Depends(_bearer)],
    cookie: Annotated[object, Depends(_cookie)],
) -> Caller:
    """Whoever asks, or Unauthenticated."""
    return await identify(request)


async def identify(request: Request) -> Caller:
    """Whoever asks, or Unauthenticated; found out once per request."""
    state: dict[str, Any] = request.scope["state"]
    if _CALLER not in state:
        access = await _authenticate(request)
        actor = Actor(
            access.name,
            door=_DOORS.get(request.headers.get(DOOR_HEADER, ""), "http"),
            principal_id=access.principal_id,
            request_id=state["request_id"],
            address=address_of(request),
        )
        database: Database = request.app.state.database
        state[_CALLER] = Caller(access, actor, await database.within(access.workspaces))
    found: Caller = state[_CALLER]
    return found


def address_of(request: Request) -> str | None:
    return request.client.host if request.client else None


async def _authenticate(request: Request) -> Access:
    gatekeeper: Gatekeeper = request.app.state.gatekeeper
    throttle: Throttle = request.app.state.throttle
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    is_token = scheme.lower() == "bearer" and bool(token)
    secret = token if is_token else request.cookies.get(COOKIE)
    if not secret:
        raise Unauthenticated("a bearer token or a session is needed")
    key = token_key(secret) if is_token else session_key(secret)
    # Who was welcome a moment ago does not suffer from what others try from there.
    if not gatekeeper.has_met(key):
        throttle.check(address_of(request))
    try:
        find = gatekeeper.by_token if is_token else gatekeeper.by_session
        access = await find(secret)
    except Unauthenticated:
        throttle.fail(address_of(request))
        raise
    throttle.count(key)
    if not is_token and request.method not in SAFE:
        _check_csrf(request, access)
    return access


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

    async def check(request: Request, who: Caller) -> Caller:
        await permit(request, who, permission)
        return who

    return gate(check)


async def permit(request: Request, who: Caller, permission: str) -> None:
    """Returns if the permission covers anything at all."""
    if not who.access.allows(permission):
        await who.refuse(permission, act_of(request), "route", request.url.path)


def act_of(request: Request) -> str:
    """What a refused request is called in the audit."""
    return f"{request.method} {request.scope['route'].path}"


# -- before the body --------------------------------------------------------------------------

Check = Callable[[Request, Caller], Coroutine[Any, Any, T]]
_checks: Final[dict[object, Check[Any]]] = {}
_of_route: Final[WeakKeyDictionary[Any, tuple[Check[Any], ...] | None]] = WeakKeyDictionary()


def gate(check: Check[T]) -> Callable[..., Coroutine[Any, Any, T]]:
    """A dependency: what a check of the caller answers, made before the body is read."""

    async def gated(request: Request, who: Annotated[Caller, Depends(caller)]) -> T:
        return await _pass(request, who, check)

    _checks[gated] = check
    return gated


async def admit(scope: Scope) -> bool:
    """Makes all checks of the route; False where it asks nothing of its caller."""
    route = scope.get("route")
    if not isinstance(route, APIRoute):
        # What stands before the routes, as /mcp does, has looked who comes; else nobody reads it.
        return True
    work = route.endpoint
    if work not in _of_route:
        found = list(_gates(route.dependant))
        _of_route[work] = tuple(_checks[one] for one in found if one in _checks) if found else None
    checks = _of_route[work]
    if checks is None:
        return False
    request = Request(scope)
    who = await identify(request)
    for check in checks:
        await _pass(request, who, check)
    return True


async def _pass(request: Request, who: Caller, check: Check[T]) -> T:
    passed: dict[object, Any] = request.scope["state"].setdefault(_PASSED, {})
    if check not in passed:
        passed[check] = await check(request, who)
    answer: T = passed[check]
    return answer


def _gates(dependant: Dependant) -> Iterator[object]:
    for inner in dependant.dependencies:
        if inner.call is caller or inner.call in _checks:
            yield inner.call
        yield from _gates(inner)
