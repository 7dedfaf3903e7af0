"""Lets the program that made an application in; it has the database open already."""

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


class _LocalCallers(CredentialCache):
    """Knows one token, which is kept nowhere and may do everything, and no session."""

    # Who has the database open reads it without us, and its login need not be able to write.
    keeps_reads = False

    def __init__(self, database: Database, token: str, name: str) -> None:
        super().__init__(database)
        self._token = token
        # The same name is the same to an Idempotency-Key, whichever process it comes from.
        known_by = uuid5(NAMESPACE_URL, f"urn:laneway:insider:{name}")
        grant = Grant(frozenset(PERMISSIONS), "all")
        self._access = Access(known_by, name, "person", (grant,))

    async def by_token(self, token: str) -> Access:
        if not compare_digest(token.encode(), self._token.encode()):
            raise Unauthenticated("this token is not known here")
        return self._access

    async def review(self, digests: Collection[bytes]) -> dict[bytes, Access]:
        return dict.fromkeys(digests, self._access)

    async def by_session(self, cookie: str) -> Access:
        raise Unauthenticated("there are no sessions here")


def let_in(app: FastAPI, name: str) -> str:
    """The token by which this process, and nobody else, uses the application as `name`."""
    token = new_secret().text
    app.state.gatekeeper = _LocalCallers(app.state.database, token, name)
    return token
