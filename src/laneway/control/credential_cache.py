"""Whom secrets belong to, remembered for a moment."""

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

# A revoked token is refused within this time; five seconds are promised.
FRESH_S: Final = 2.0
_MOST_CACHED: Final = 10_000


class CredentialCache:
    """Knows for a moment whom a token belongs to, so that a busy client costs no statement each."""

    # Whether the audit is to know what assistants read.
    keeps_reads = True

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
