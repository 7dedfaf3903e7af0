"""Authenticates requests by a bearer token, or by a browser's session with its CSRF token.

`admit` authenticates and runs the checks of a route before any of the body is read. The route's
dependencies then return the stored results.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from secrets import compare_digest
from typing import Annotated, Any, Final, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.types import Scope

from laneway.api.http.bodies import GONE
from laneway.api.http.parameters import check_parameters
from laneway.control import audit
from laneway.control.credential_cache import CredentialCache, session_key, token_key
from laneway.control.throttle import Throttle
from laneway.domain.actor import Actor, Door
from laneway.domain.permissions import Access
from laneway.domain.token import digest_of
from laneway.errors import Forbidden, NotFound, Unauthenticated
from laneway.store.database import Database

COOKIE: Final = "laneway_session"
CSRF_HEADER: Final = "X-CSRF-Token"
# The kind of client, as the client itself reports it; used only in the audit.
DOOR_HEADER: Final = "Laneway-Door"
_DOORS: Final[dict[str, Door]] = {"cli": "cli", "mcp": "mcp", "python": "python"}
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# Keys in the request's state, which an outer application may use as well.
_CALLER: Final = "laneway.caller"
_PASSED: Final = "laneway.passed"

T = TypeVar("T")

_bearer = HTTPBearer(auto_error=False, description="A token of `laneway tokens create`")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated request: what it may do, and the actor that the audit records."""

    access: Access
    actor: Actor
    database: Database

    async def refuse(
        self, permission: str, action: str, kind: str, name: str | None = None
    ) -> None:
        """Record the refusal in the audit and raise Forbidden."""
        await audit.refuse(self.database, self.actor, action, kind, name)
        raise Forbidden(f"needs the permission {permission}")

    async def miss(self, seen_by: str, action: str, kind: str, name: str) -> NoReturn:
        """Record an attempt to change an object out of reach, and raise NotFound.

        Neither the audit entry nor the response time reveals whether the object exists. Nothing is
        recorded for callers that may see everything: for them it is simply missing.
        """
        if not self.access.allows_everywhere(seen_by):
            await audit.refuse(self.database, self.actor, action, kind, name)
        raise NotFound(f"no {kind} {name}", kind=kind, name=name)


def known_caller(request: Request) -> Caller | None:
    """The caller, if the request was authenticated."""
    found: Caller | None = request.scope.get("state", {}).get(_CALLER)
    return found


def expires_soon(scope: Scope) -> float | None:
    """The seconds until the token of a request expires; None if that is not soon."""
    found: Caller | None = scope.get("state", {}).get(_CALLER)
    expiry = None if found is None else found.access.token_expiry
    return None if expiry is None else expiry.soon_s


async def caller(
    request: Request,
    bearer: Annotated[object, Depends(_bearer)],
    cookie: Annotated[object, Depends(_cookie)],
) -> Caller:
    """A dependency: the caller, or Unauthenticated. Also refuses unknown query parameters."""
    found = await identify(request)
    check_parameters(request)
    return found


async def identify(request: Request) -> Caller:
    """The caller, or Unauthenticated; determined once per request."""
    state: dict[str, Any] = request.scope["state"]
    if _CALLER not in state:
        access, is_session = await _authenticate(request)
        actor = Actor(
            access.name,
            door="ui" if is_session else _door_of(request),
            principal_id=access.principal_id,
            request_id=state["request_id"],
            address=address_of(request),
        )
        database: Database = request.app.state.database
        who = Caller(access, actor, await database.within(access.workspaces))
        if is_session and request.method not in SAFE:
            await _check_csrf(request, who)
        state[_CALLER] = who
    found: Caller = state[_CALLER]
    return found


def _door_of(request: Request) -> Door:
    return _DOORS.get(request.headers.get(DOOR_HEADER, ""), "http")


def address_of(request: Request) -> str | None:
    return request.client.host if request.client else None


async def _authenticate(request: Request) -> tuple[Access, bool]:
    """The caller's access, and whether the request uses a browser's session."""
    credentials: CredentialCache = request.app.state.credentials
    throttle: Throttle = request.app.state.throttle
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    is_token = scheme.lower() == "bearer" and bool(token)
    secret = token if is_token else session_secret(request)
    if not secret:
        raise Unauthenticated("a bearer token or a session is required")
    key = token_key(secret) if is_token else session_key(secret)
    find = credentials.by_token if is_token else credentials.by_session
    access = await throttle.check(
        address_of(request),
        lambda: find(secret),
        is_known=credentials.was_valid(key),
        is_gone=request.scope.get(GONE),
    )
    throttle.count(key)
    return access, not is_token


def secret_digest(request: Request) -> bytes | None:
    """The digest by which the request's secret can be looked up again later."""
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    if scheme.lower() == "bearer" and token:
        return digest_of(token)
    return digest_of(session_secret(request), "session")


def cookie_name(request: Request) -> str:
    """The session's cookie. `__Host-` keeps pages of other hosts from setting it; it needs TLS."""
    is_host_only = request.url.scheme == "https" and not request.scope.get("root_path")
    return f"__Host-{COOKIE}" if is_host_only else COOKIE


def session_secret(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request))


async def _check_csrf(request: Request, who: Caller) -> None:
    given, own = request.headers.get(CSRF_HEADER, ""), who.access.csrf
    try:
        if own is None or not compare_digest(given.encode(), own.encode()):
            raise Forbidden(f"a browser's session must send the header {CSRF_HEADER}")
        check_origin(request)
    except Forbidden:
        await audit.refuse(who.database, who.actor, action_of(request), "route", request.url.path)
        raise


def check_origin(request: Request) -> None:
    """Refuse requests from pages of another site."""
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}":
        raise Forbidden("a browser's session can be used only by pages of this server")


def needs(permission: str) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, if the permission covers anything at all."""

    async def check(request: Request, who: Caller) -> Caller:
        await permit(request, who, permission)
        return who

    return gate(check)


async def permit(request: Request, who: Caller, permission: str) -> None:
    """Refuse the caller unless the permission covers anything at all."""
    if not who.access.allows(permission):
        await who.refuse(permission, action_of(request), "route", request.url.path)


def action_of(request: Request) -> str:
    """The name of a refused request in the audit."""
    return f"{request.method} {request.scope['route'].path_format}"


# -- before the body --------------------------------------------------------------------------

Check = Callable[[Request, Caller], Coroutine[Any, Any, T]]
_checks: Final[dict[object, Check[Any]]] = {}
_of_route: Final[WeakKeyDictionary[Any, tuple[Check[Any], ...] | None]] = WeakKeyDictionary()


def gate(check: Check[T]) -> Callable[..., Coroutine[Any, Any, T]]:
    """A dependency: the result of a check of the caller, made before the body is read."""

    async def gated(request: Request, who: Annotated[Caller, Depends(caller)]) -> T:
        return await _pass(request, who, check)

    _checks[gated] = check
    return gated


async def admit(scope: Scope) -> bool:
    """Run all checks of the route; False if the route has none and is open to anyone."""
    route = scope.get("route")
    if not isinstance(route, APIRoute):
        # Middleware such as /mcp authenticates by itself; otherwise the body is never read.
        return True
    endpoint = route.endpoint
    if endpoint not in _of_route:
        found = list(_gates(route.dependant))
        gated = tuple(_checks[each] for each in found if each in _checks)
        _of_route[endpoint] = gated if found else None
    checks = _of_route[endpoint]
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
        credentials: CredentialCache = request.app.state.credentials
        if who.actor.door == "mcp" and request.method in SAFE and credentials.keeps_reads:
            # The audit records every call of an assistant, reads included.
            await audit.note(who.database, who.actor, action_of(request), "route", request.url.path)
    result: T = passed[check]
    return result


def _gates(dependant: Dependant) -> Iterator[object]:
    for inner in dependant.dependencies:
        if inner.call is caller or inner.call in _checks:
            yield inner.call
        yield from _gates(inner)
