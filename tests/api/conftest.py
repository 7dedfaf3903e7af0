"""The API in process: an app on a separate database, and principals with tokens.

`app`      the application of `make_app`
`people`   makes principals: `people.new("ann", "submitter", scope="own")` returns a Principal
`ask`      sends a request: `await ask(ann, "POST", "/jobs", json={...})`; None: without a token
`factory`    the database directly: submits, claims and ends jobs without the API
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from psycopg.sql import SQL, Identifier

from laneway.api.app import make_app
from laneway.config.settings import Settings
from laneway.domain.permissions import SEEDED_ROLES
from laneway.domain.token import digest_of, new_secret
from laneway.store.database import Database

Ask = Callable[..., Coroutine[Any, Any, httpx2.Response]]
# The usual scope of each seeded role.
SCOPES = {"submitter": "own", **{role: "all" for role in SEEDED_ROLES if role != "submitter"}}


@dataclass(frozen=True)
class Principal:
    """A principal with a token."""

    id: UUID
    name: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class People:
    """Creates principals, grants and tokens with plain SQL."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def new(
        self,
        name: str,
        role: str | None = None,
        *,
        scope: str | None = None,
        workspace: str | None = None,
        lanes: Sequence[str] | None = None,
        permissions: Sequence[str] | None = None,
        token_lanes: Sequence[str] | None = None,
    ) -> Principal:
        """A principal with a token and, if named, a role; `permissions` narrow the token."""
        principal_id = uuid4()
        self._conn.execute(
            "insert into laneway.principals (id, name, kind, created_by)"
            " values (%s, %s, 'service', 'tests')",
            [principal_id, name],
        )
        if role is not None:
            self.grant(principal_id, role, scope=scope, workspace=workspace, lanes=lanes)
        token = self.token(principal_id, permissions=permissions, lanes=token_lanes)
        return Principal(principal_id, name, token)

    def grant(
        self,
        principal_id: UUID,
        role: str,
        *,
        scope: str | None = None,
        workspace: str | None = None,
        lanes: Sequence[str] | None = None,
        **bounds: int,
    ) -> None:
        grant_id = uuid4()
        scope = scope or ("workspace" if workspace else SCOPES.get(role, "all"))
        self._conn.execute(
            "insert into laneway.role_grants"
            " (id, principal_id, role, scope, workspace, lanes, granted_by)"
            " values (%s, %s, %s, %s, %s, %s, 'tests')",
            [grant_id, principal_id, role, scope, workspace, list(lanes) if lanes else None],
        )
        for name, bound in bounds.items():
            change = SQL("update laneway.role_grants set {} = %s where id = %s")
            self._conn.execute(change.format(Identifier(name)), [bound, grant_id])

    def role(self, name: str, *permissions: str) -> str:
        """Create a custom role."""
        self._conn.execute(
            "insert into laneway.roles (name, permissions, updated_by) values (%s, %s, 'tests')",
            [name, list(permissions)],
        )
        return name

    def token(
        self,
        principal_id: UUID,
        *,
        permissions: Sequence[str] | None = None,
        lanes: Sequence[str] | None = None,
        job_types: Sequence[str] | None = None,
    ) -> str:
        secret = new_secret()
        self._conn.execute(
            "insert into laneway.tokens"
            " (id, principal_id, name, hint, digest, permissions, lanes, job_types, created_by)"
            " values (%s, %s, 'test', %s, %s, %s, %s, %s, 'tests')",
            [
                uuid4(),
                principal_id,
                secret.hint,
                secret.digest,
                list(permissions) if permissions is not None else None,
                list(lanes) if lanes is not None else None,
                list(job_types) if job_types is not None else None,
            ],
        )
        return secret.text

    def expire(self, token: str, *, days: float, life_days: float = 90) -> None:
        """Let a token expire in so many days, at the end of a life of `life_days`."""
        self._conn.execute(
            "update laneway.tokens set expires_at = now() + %s * interval '1 day',"
            " created_at = now() + (%s - %s) * interval '1 day' where digest = %s",
            [days, days, life_days, digest_of(token)],
        )

    def everyone(self) -> dict[str, Principal]:
        """One principal per seeded role, named after it, in its usual scope."""
        return {role: self.new(role, role) for role in SEEDED_ROLES}


@pytest.fixture
def people(conn: psycopg.Connection[Any]) -> People:
    return People(conn)


@pytest.fixture
def audit_entries(conn: psycopg.Connection[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """The audit entries (actor, action, kind, name, outcome), oldest first."""

    def audit_entries() -> list[tuple[Any, ...]]:
        rows = conn.execute(
            "select actor, action, kind, name, outcome from laneway.audit order by id"
        )
        return rows.fetchall()

    return audit_entries


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests api")
    yield database
    await database.close()


@pytest.fixture
async def app(database: Database) -> AsyncIterator[FastAPI]:
    app = make_app(database.settings, database)
    yield app
    await app.state.close()


async def serve(dsn: str, **settings: Any) -> AsyncGenerator[FastAPI]:
    """One more server on a database."""
    chosen = Settings.load(database_url=dsn, **settings)
    database = Database(dsn, chosen, role="tests api")
    app = make_app(chosen, database)
    yield app
    await app.state.close()
    await database.close()


@pytest.fixture
async def ask(app: FastAPI) -> AsyncIterator[Ask]:
    """Send one request as a principal; 500 is a response here, not an exception."""
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:

        async def ask(
            who: Principal | None, method: str, path: str, **more: Any
        ) -> httpx2.Response:
            headers = {**(who.headers if who else {}), **more.pop("headers", {})}
            answer = await client.request(method, path, headers=headers, **more)
            if answer.status_code >= 400:
                # Every refusal is a problem document.
                assert answer.headers["content-type"] == "application/problem+json", answer.text
                if method != "HEAD":
                    assert json.loads(answer.text)["request_id"] == answer.headers["x-request-id"]
            return answer

        yield ask


@pytest.fixture
def still_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the rate limits stands still, so no slow machine refills them."""
    monkeypatch.setattr("laneway.control.throttle.time", SimpleNamespace(monotonic=lambda: 0.0))
