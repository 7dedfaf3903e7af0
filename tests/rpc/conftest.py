"""A server for remote workers in this process, on loopback, and principals with tokens to call it.

`station`   the server and a channel to it: `station.call(ann).Heartbeat(...)`
`people`    makes principals: `people.new("ann", "remote_worker", lanes=["fast"])`
`scene`     the database from behind: submits, claims and ends jobs without any worker
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.store.database import Database
from tests.api.conftest import People
from tests.control.scene import Scene
from tests.rpc.station import Station


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        yield conn


@pytest.fixture
def scene(conn: psycopg.Connection[Any]) -> Scene:
    return Scene(conn)


@pytest.fixture
def people(conn: psycopg.Connection[Any]) -> People:
    return People(conn)


@pytest.fixture
def acts(conn: psycopg.Connection[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """What the audit holds: (actor, door, action, outcome), oldest first."""

    def acts() -> list[tuple[Any, ...]]:
        rows = conn.execute("select actor, door, action, outcome from laneway.audit order by id")
        return rows.fetchall()

    return acts


@pytest.fixture
def settings(dsn: str) -> Settings:
    return Settings.load(database_url=dsn, leader_ttl=1.0, watchdog_interval=0.1)


@pytest.fixture
async def database(dsn: str, settings: Settings) -> AsyncIterator[Database]:
    database = Database(dsn, settings, role="tests rpc")
    yield database
    await database.close()


@pytest.fixture
async def station(dsn: str, settings: Settings, database: Database) -> AsyncIterator[Station]:
    async with Station(dsn, settings, database) as station:
        yield station
