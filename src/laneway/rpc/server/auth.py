"""Authenticates calls, and finds the lanes and job types that a token may claim."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import UUID

import grpc

from laneway.config.settings import Settings
from laneway.control import audit
from laneway.control.credential_cache import CredentialCache, token_key
from laneway.control.throttle import Buckets, Throttle
from laneway.domain.actor import Actor
from laneway.domain.permissions import CLAIM, DECLARE, Access, Term
from laneway.domain.token import digest_of
from laneway.errors import Forbidden, LanewayError, RateLimited, Unauthenticated
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store.database import Database

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[Any, Any]
else:
    Context = grpc.aio.ServicerContext

# Streams opened per second by one principal, after all its workers have connected twice. Each
# costs a row and some work.
HANDSHAKES_PER_S: Final = 20.0
LACK_AUDITS_PER_S: Final = 1 / 3600


@dataclass(frozen=True, slots=True)
class AuthenticatedCall:
    """A call with a valid token."""

    caller: StreamCaller
    digest: bytes


@dataclass(slots=True, eq=False)
class StreamSlot:
    """One open stream, with callbacks for a token that loses all or some of its permissions."""

    authenticated: AuthenticatedCall
    end: Callable[[LanewayError], None]
    update_caller: Callable[[StreamCaller], None]
    caller: StreamCaller


class Authenticator:
    """Authenticates calls by their token, and reviews open streams."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        credential_cache: CredentialCache,
        throttle: Throttle,
    ) -> None:
        self._database = database
        self._most = settings.max_remote_workers
        self._most_each = settings.max_remote_workers_per_principal
        self._credential_cache = credential_cache
        self._throttle = throttle
        self._handshakes = Buckets(HANDSHAKES_PER_S, 2.0 * self._most_each)
        self._slots: set[StreamSlot] = set()
        self._per_principal: Counter[object] = Counter()
        self._reviewing = asyncio.Lock()
        self._lack_audits = Buckets(LACK_AUDITS_PER_S, 1.0)

    @property
    def count(self) -> int:
        """The number of open streams."""
        return len(self._slots)

    async def authenticate(self, context: Context, call: str) -> AuthenticatedCall:
        """The caller, if its token may claim jobs in any lane."""
        address = address_of(context)
        token = token_of(context)
        digest = digest_of(token)
        key = token_key(token)
        access = await self._throttle.check(
            address,
            lambda: self._credential_cache.by_token(token),
            is_known=self._credential_cache.was_valid(key),
            peer=context.peer(),
        )
        self._throttle.count(key)
        try:
            if digest is None:
                raise Unauthenticated("the token is not valid")
            return AuthenticatedCall(caller_of(access), digest)
        except Forbidden:
            await self._audit(access.name, access.principal_id, context, call)
            raise

    async def audit_refusal(
        self, authenticated: AuthenticatedCall, context: Context, call: str
    ) -> None:
        """Audits that an authenticated caller lacks a permission for this call."""
        await self._audit(
            authenticated.caller.name, authenticated.caller.principal_id, context, call
        )

    async def audit_missing_declare(
        self, caller: StreamCaller, context: Context, action: str
    ) -> None:
        """Audits an action that needs workers:declare, at most once an hour; doctor names it."""
        if not self._lack_audits.take((caller.principal_id, action)):
            await self._audit(caller.name, caller.principal_id, context, action)

    async def _audit(self, name: str, principal_id: UUID, context: Context, call: str) -> None:
        actor = Actor(name, door="grpc", principal_id=principal_id, address=address_of(context))
        await audit.refuse(self._database, actor, call, "call", call)

    @contextmanager
    def stream_slot(
        self,
        authenticated: AuthenticatedCall,
        end: Callable[[LanewayError], None],
        update_caller: Callable[[StreamCaller], None],
    ) -> Iterator[None]:
        """Counts a stream against the limits while it is open."""
        principal = authenticated.caller.principal_id
        if len(self._slots) >= self._most:
            raise RateLimited(f"{self._most} workers are connected here: try another server")
        if self._per_principal[principal] >= self._most_each:
            raise RateLimited(
                f"{authenticated.caller.name} has {self._most_each} workers connected here"
            )
        wait_s = self._handshakes.take(principal)
        if wait_s:
            raise RateLimited(f"workers of {authenticated.caller.name} connect too often", wait_s)
        slot = StreamSlot(authenticated, end, update_caller, authenticated.caller)
        self._slots.add(slot)
        self._per_principal[principal] += 1
        try:
            yield
        finally:
            self._slots.discard(slot)
            self._per_principal -= Counter({principal: 1})

    async def review(self) -> None:
        """Ends streams with revoked tokens, and updates those whose permissions changed."""
        # One review at a time: an older one must not undo a newer one.
        async with self._reviewing:
            await self._review()

    async def _review(self) -> None:
        # Streams that open meanwhile were checked when they opened.
        slots = list(self._slots)
        found = await self._credential_cache.review({slot.authenticated.digest for slot in slots})
        for slot in slots:
            access = found.get(slot.authenticated.digest)
            try:
                if access is None:
                    raise Unauthenticated("the token is not valid")
                caller = caller_of(access)
            except (Unauthenticated, Forbidden) as error:
                slot.end(error)
                continue
            if caller != slot.caller:
                slot.caller = caller
                slot.update_caller(caller)


def caller_of(access: Access) -> StreamCaller:
    """The lanes and job types that a token may claim; Forbidden if it may claim none by lane."""
    reach = access.reach(CLAIM)
    if reach.is_empty:
        raise Forbidden(f"needs the permission {CLAIM}")
    terms = [term for term in reach.terms if term.owner is None and term.workspace is None]
    if not terms:
        raise Forbidden(
            f"{CLAIM} is granted for own jobs or a workspace, but jobs are claimed by lane:"
            " grant it with the scope all, in some lanes or in any"
        )
    declares = [t for t in access.reach(DECLARE).terms if t.owner is None and t.workspace is None]
    soon_s = None if access.token_expiry is None else access.token_expiry.soon_s
    return StreamCaller(
        access.principal_id,
        access.name,
        _lanes_of(terms),
        access.token_job_types,
        _lanes_of(declares),
        None if soon_s is None else int(soon_s * 1000),
        tuple(terms),
    )


def _lanes_of(terms: Iterable[Term]) -> frozenset[str] | None:
    """The union of the terms' lanes; None: any lane."""
    lanes: frozenset[str] = frozenset()
    for term in terms:
        if term.lanes is None:
            return None
        lanes |= term.lanes
    return lanes


def token_of(context: Context) -> str:
    """The bearer token of a call."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            text = value if isinstance(value, str) else value.decode("ascii", "replace")
            scheme, _, token = text.partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
            break
    raise Unauthenticated("a bearer token is needed: authorization: Bearer <token>")


def address_of(context: Context) -> str | None:
    """The host of a peer; gRPC writes ipv4:192.0.2.1:4711 or ipv6:%5B::1%5D:4711."""
    kind, _, rest = unquote(context.peer() or "").partition(":")
    if kind not in ("ipv4", "ipv6"):
        return None
    return rest.rpartition(":")[0].strip("[]") or None
