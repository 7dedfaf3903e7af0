"""A pooler is detected, and connections work without a session; see tests/engine too."""

from __future__ import annotations

import logging

import pytest
from psycopg.conninfo import make_conninfo

from laneway.config.settings import Settings
from laneway.store import health, pooler
from laneway.store.database import Database, connection_options
from laneway.store.leases import heartbeat
from laneway.store.statement import Statement, scalar
from laneway.store.sync_connection import SyncConnection

pytestmark = pytest.mark.usefixtures("new_sessions")


class Text(Statement[int]):
    """A statement of a test."""

    @property
    def text(self) -> str:
        return self.name


PREPARED = Text("select count(*) from pg_prepared_statements", scalar)


@pytest.fixture
def pooled(dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A DSN behind which no server process has the client's backend pid."""
    monkeypatch.setattr(pooler, "BACKEND_PID", b"select 0")
    return make_conninfo(dsn, application_name=f"laneway {id(monkeypatch)}")


async def prepared(dsn: str, **settings: bool) -> int:
    database = Database(dsn, Settings.load(database_url=dsn, **settings))
    await database.run(health.read_server())
    count = await database.run(PREPARED)
    await database.close()
    return count


async def test_nothing_is_prepared_where_a_pooler_is_met(
    pooled: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway")
    assert await prepared(pooled) == 0
    assert await prepared(pooled) == 0
    (record,) = [r for r in caplog.records if "pooler is in front of" in r.getMessage()]
    # A warning would be printed by every short command.
    assert record.levelno == logging.INFO


async def test_session_pooler_is_not_a_direct_connection(
    pooled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_shared(*_: object) -> bool:
        return False

    monkeypatch.setattr(pooler, "is_shared", is_shared)
    assert await health.find_pooler(pooled, 5) == "session"


async def test_no_pooler_is_found_before_postgresql_itself(dsn: str) -> None:
    assert await health.find_pooler(dsn, 5) is None


async def test_setting_decides_about_poolers_without_asking(pooled: str) -> None:
    assert await prepared(pooled, pooler=False) > 0
    assert await prepared(pooled, pooler=True) == 0


async def test_direct_connection_prepares_its_statements(dsn: str) -> None:
    assert await prepared(dsn) > 0


def test_sync_connection_prepares_nothing_where_a_pooler_is_met(pooled: str) -> None:
    connection = SyncConnection(pooled, connection_options(pooled, Settings(), "test"))
    try:
        assert connection.run(heartbeat([], [])) == []
        assert connection.run(PREPARED) == 0
    finally:
        connection.close()
