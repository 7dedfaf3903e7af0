"""A server for remote workers in this process, on loopback, and principals with tokens to call it.

`rpc`   the server and a channel to it: `rpc.call(ann).Heartbeat(...)`
`people`    makes principals: `people.new("ann", "remote_worker", lanes=["fast"])`
`factory`     the database directly: submits, claims and ends jobs without any worker
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.store.database import Database
from tests.api.conftest import People
from tests.rpc.rpc_harness import RpcHarness


@pytest.fixture
def people(conn: psycopg.Connection[Any]) -> People:
    return People(conn)


@pytest.fixture
def audit_entries(conn: psycopg.Connection[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """The audit entries (actor, door, action, outcome), oldest first."""

    def audit_entries() -> list[tuple[Any, ...]]:
        rows = conn.execute("select actor, door, action, outcome from laneway.audit order by id")
        return rows.fetchall()

    return audit_entries


@pytest.fixture
def settings(dsn: str) -> Settings:
    return Settings.load(database_url=dsn, leader_ttl=1.0, watchdog_interval=0.1)


@pytest.fixture
async def database(dsn: str, settings: Settings) -> AsyncIterator[Database]:
    database = Database(dsn, settings, role="tests rpc")
    yield database
    await database.close()


@pytest.fixture
async def rpc(dsn: str, settings: Settings, database: Database) -> AsyncIterator[RpcHarness]:
    async with RpcHarness(dsn, settings, database) as rpc:
        yield rpc
