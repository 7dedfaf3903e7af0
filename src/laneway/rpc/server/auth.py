"""Who calls, and which lanes and job types its token may claim in."""

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

# Of one principal, once all its workers have come twice: each hello is a row, and work for us.
HELLOS_PER_S: Final = 20.0
LACKS_PER_S: Final = 1 / 3600


@dataclass(frozen=True, slots=True)
class AuthenticatedCall:
    """A call that was let in."""

    caller: StreamCaller
    digest: bytes


@dataclass(slots=True, eq=False)
class StreamSlot:
    """The place of one open stream, and what to do when its token has lost its power, or some."""

    visit: AuthenticatedCall
    end: Callable[[LanewayError], None]
    narrow: Callable[[StreamCaller], None]
    caller: StreamCaller


class Authenticator:
    """Lets calls in by their token, and knows the streams that are open."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        gatekeeper: CredentialCache,
        throttle: Throttle,
    ) -> None:
        self._database = database
        self._most = settings.max_remote_workers
        self._most_each = settings.max_remote_workers_per_principal
        self._gatekeeper = gatekeeper
        self._throttle = throttle
        self._hellos = Buckets(HELLOS_PER_S, 2.0 * self._most_each)
        self._seats: set[StreamSlot] = set()
        self._taken: Counter[object] = Counter()
        self._reviewing = asyncio.Lock()
        self._lacks = Buckets(LACKS_PER_S, 1.0)

    @property
    def count(self) -> int:
        """Streams that are open."""
        return len(self._seats)

    async def admit(self, context: Context, call: str) -> AuthenticatedCall:
        """Whoever calls, if its token may claim jobs anywhere."""
        address = address_of(context)
        token = token_of(context)
        digest = digest_of(token)
        key = token_key(token)
        access = await self._throttle.check(
            address,
            lambda: self._gatekeeper.by_token(token),
            is_known=self._gatekeeper.has_met(key),
            peer=context.peer(),
        )
        self._throttle.count(key)
        try:
            if digest is None:
                raise Unauthenticated("the token is not valid")
            return AuthenticatedCall(caller_of(access), digest)
        except Forbidden:
            await self._keep_refusal(access.name, access.principal_id, context, call)
            raise

    async def turn_away(self, visit: AuthenticatedCall, context: Context, call: str) -> None:
        """Keeps that somebody who was let in may not do what he came for."""
        await self._keep_refusal(visit.caller.name, visit.caller.principal_id, context, call)

    async def note_lack(self, caller: StreamCaller, context: Context, action: str) -> None:
        """Audit what a token lacks workers:declare for, once an hour: doctor names it."""
        if not self._lacks.take((caller.principal_id, action)):
            await self._keep_refusal(caller.name, caller.principal_id, context, action)

    async def _keep_refusal(
        self, name: str, principal_id: UUID, context: Context, call: str
    ) -> None:
        actor = Actor(name, door="grpc", principal_id=principal_id, address=address_of(context))
        await audit.refuse(self._database, actor, call, "call", call)

    @contextmanager
    def seat(
        self,
        visit: AuthenticatedCall,
        end: Callable[[LanewayError], None],
        narrow: Callable[[StreamCaller], None],
    ) -> Iterator[None]:
        """Holds a place for a stream while it is open."""
        principal = visit.caller.principal_id
        if len(self._seats) >= self._most:
            raise RateLimited(f"{self._most} workers are connected here: try another server")
        if self._taken[principal] >= self._most_each:
            raise RateLimited(f"{visit.caller.name} has {self._most_each} workers connected here")
        wait_s = self._hellos.take(principal)
        if wait_s:
            raise RateLimited(f"workers of {visit.caller.name} connect too often", wait_s)
        seat = StreamSlot(visit, end, narrow, visit.caller)
        self._seats.add(seat)
        self._taken[principal] += 1
        try:
            yield
        finally:
            self._seats.discard(seat)
            self._taken -= Counter({principal: 1})

    async def review(self) -> None:
        """Ends streams whose token has lost its power, and tells those that reach other lanes."""
        # One at a time: what an older look found must not undo what a newer one did.
        async with self._reviewing:
            await self._review()

    async def _review(self) -> None:
        # Who takes a seat meanwhile was looked at as he came in.
        seats = list(self._seats)
        found = await self._gatekeeper.review({seat.visit.digest for seat in seats})
        for seat in seats:
            access = found.get(seat.visit.digest)
            try:
                if access is None:
                    raise Unauthenticated("the token is not valid")
                caller = caller_of(access)
            except (Unauthenticated, Forbidden) as error:
                seat.end(error)
                continue
            if caller != seat.caller:
                seat.caller = caller
                seat.narrow(caller)


def caller_of(access: Access) -> StreamCaller:
    """What the token may claim; Forbidden where that is nothing, or cannot be told by lanes."""
    reach = access.reach(CLAIM)
    if reach.is_empty:
        raise Forbidden(f"needs the permission {CLAIM}")
    terms = [term for term in reach.terms if term.owner is None and term.workspace is None]
    if not terms:
        raise Forbidden(
            f"{CLAIM} is granted for own jobs or a workspace: jobs are claimed by lane,"
            " grant it with the scope all, in some lanes or in any"
        )
    declares = [t for t in access.reach(DECLARE).terms if t.owner is None and t.workspace is None]
    return StreamCaller(
        access.principal_id,
        access.name,
        _lanes_of(terms),
        access.token_job_types,
        _lanes_of(declares),
    )


def _lanes_of(terms: Iterable[Term]) -> frozenset[str] | None:
    """The lanes of all terms together; None: any."""
    lanes: frozenset[str] = frozenset()
    for term in terms:
        if term.lanes is None:
            return None
        lanes |= term.lanes
    return lanes


def token_of(context: Context) -> str:
    """The token that a call came with."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            text = value if isinstance(value, str) else value.decode("ascii", "replace")
            scheme, _, token = text.partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
            break
    raise Unauthenticated("a bearer token is needed: authorization: Bearer <token>")


def address_of(context: Context) -> str | None:
    """The host of a peer as gRPC writes it: ipv4:192.0.2.1:4711, ipv6:%5B::1%5D:4711."""
    kind, _, rest = unquote(context.peer() or "").partition(":")
    if kind not in ("ipv4", "ipv6"):
        return None
    return rest.rpartition(":")[0].strip("[]") or None
