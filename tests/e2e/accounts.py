"""People who use the dashboard, each with a role, a token and links that sign in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg

from laneway.control.sessions import LINK_LIFE_S
from laneway.domain.token import new_secret
from laneway.store import sessions
from laneway.store.database import run_sync
from tests.api.conftest import People

ROLES = ("platform_admin", "operator", "approver", "viewer")


@dataclass(frozen=True)
class Account:
    """A person with a role, named after it, and a token."""

    id: UUID
    name: str
    token: str


class Accounts:
    """Creates people once and links as often as needed."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn
        self._people = People(conn)
        self._known: dict[str, Account] = {}

    def of(self, role: str, name: str = "") -> Account:
        """The person of this name, created at the first call."""
        name = name or role
        if name not in self._known:
            person = uuid4()
            self._conn.execute(
                "insert into laneway.principals (id, name, kind, created_by)"
                " values (%s, %s, 'person', 'tests')",
                [person, name],
            )
            self._people.grant(person, role)
            self._known[name] = Account(person, name, self._people.token(person))
        return self._known[name]

    def link(self, account: Account, url: str) -> str:
        """The address of a new one-time link at this server."""
        secret = new_secret("link")
        run_sync(self._conn, sessions.create_link(account.id, secret.digest, LINK_LIFE_S))
        return f"{url}/login?link={secret.text}"
