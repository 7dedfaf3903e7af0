"""A cache of the access of tokens and sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from hashlib import sha256
from typing import Any, Final

from laneway.control import access as verbs
from laneway.domain.permissions import Access
from laneway.errors import Unauthenticated
from laneway.store.database import Database

# A revoked token is refused within this time; the documented bound is five seconds.
FRESH_S: Final = 2.0
_MAX_CACHED: Final = 10_000


class CredentialCache:
    """Caches access for a moment, so that a busy client does not cost a statement per request."""

    # Whether the audit records what assistants read.
    keeps_reads = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[float, Access]] = {}
        self._lookups: dict[bytes, asyncio.Future[Access]] = {}

    async def by_token(self, token: str) -> Access:
        return await self._find(token_key(token), verbs.authenticate, token)

    async def by_session(self, cookie: str) -> Access:
        return await self._find(session_key(cookie), verbs.authenticate_session, cookie)

    def was_valid(self, key: bytes) -> bool:
        """Whether this secret was valid recently."""
        return key in self._known

    async def review(self, digests: Collection[bytes]) -> dict[bytes, Access]:
        """The current access of the secrets of open streams; invalid ones are missing."""
        return await verbs.review(self._database, digests)

    def forget_session(self, cookie: str) -> None:
        """Drop a session that has ended."""
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
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = asyncio.ensure_future(self._look_up(key, verb(self._database, secret)))
            self._lookups[key] = lookup
            lookup.add_done_callback(lambda _: self._lookups.pop(key))
        # Concurrent requests with one token share one lookup; shielded, one can leave alone.
        return await asyncio.shield(lookup)

    async def _look_up(self, key: bytes, authenticating: Coroutine[Any, Any, Access]) -> Access:
        began = time.monotonic()
        try:
            access = await authenticating
        except Unauthenticated:
            self._known.pop(key, None)
            raise
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        self._known[key] = began + FRESH_S, access
        return access


def token_key(token: str) -> bytes:
    return b"t" + sha256(token.encode()).digest()


def session_key(cookie: str) -> bytes:
    return b"s" + sha256(cookie.encode()).digest()
