"""Authenticates the process that created the application: it has the database open already."""

from __future__ import annotations

from collections.abc import Collection
from secrets import compare_digest
from uuid import NAMESPACE_URL, uuid5

from fastapi import FastAPI

from laneway.control.credential_cache import CredentialCache
from laneway.domain.permissions import PERMISSIONS, Access, Grant
from laneway.domain.token import new_secret
from laneway.errors import Unauthenticated
from laneway.store.database import Database


class _LocalCredentials(CredentialCache):
    """Accepts one token, which is never stored and allows everything, and no session."""

    # The process can read the database anyway, and its login may not be allowed to write the audit.
    keeps_reads = False

    def __init__(self, database: Database, token: str, name: str) -> None:
        super().__init__(database)
        self._token = token
        # Derived from the name, so that an Idempotency-Key works across processes.
        principal_id = uuid5(NAMESPACE_URL, f"urn:laneway:insider:{name}")
        grant = Grant(frozenset(PERMISSIONS), "all")
        self._access = Access(principal_id, name, "person", (grant,))

    async def by_token(self, token: str) -> Access:
        if not compare_digest(token.encode(), self._token.encode()):
            raise Unauthenticated("the token is not valid for this process")
        return self._access

    async def review(self, digests: Collection[bytes]) -> dict[bytes, Access]:
        return dict.fromkeys(digests, self._access)

    async def by_session(self, cookie: str) -> Access:
        raise Unauthenticated("this process has no sessions: use its token")


def local_token(app: FastAPI, name: str) -> str:
    """Create a token with which only this process can use the application, as `name`."""
    token = new_secret().text
    app.state.credentials = _LocalCredentials(app.state.database, token, name)
    return token
