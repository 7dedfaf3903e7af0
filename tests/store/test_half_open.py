"""The server ends a transaction of a process whose network goes silent."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from laneway.config.settings import Settings
from laneway.control import audit
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import DatabaseUnavailable
from laneway.store.database import Database, Runner
from laneway.store.statement import Statement, nothing
from laneway.testing.proxy import Proxy
from tests.conftest import TEST_SETTINGS
from tests.support.server_address import address, through
from tests.support.store_client import StoreClient

PATIENCE_S = 60.0
IDLE_S = 0.5


class Text(Statement[Any]):
    """A statement of a test."""

    @property
    def text(self) -> str:
        return self.name


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    async with Proxy(*address(dsn)) as opened:
        yield opened


@pytest.mark.parametrize(
    "kind, pooler", [("transaction", False), ("joined", True), ("audited", True)]
)
async def test_claims_go_on_after_a_lane_change_fell_silent(
    db: StoreClient, proxy: Proxy, dsn: str, kind: str, pooler: bool
) -> None:
    db.submit()
    # Behind a pooler the start of a session sets no timeouts: the transaction sets them.
    settings = Settings.load(database_url=dsn, pooler=pooler, idle_transaction_timeout=IDLE_S)
    database = Database(through(proxy, dsn), settings, role="tests silent")
    kinds: dict[str, Callable[[], AbstractAsyncContextManager[Runner]]] = {
        "transaction": database.transaction,
        "joined": database.joined,
        "audited": partial(audit.audited, database, "tests", "lane.changed", "lane", "default"),
    }

    async def change() -> None:
        async with kinds[kind]() as inside:
            await inside.run(Text("update laneway.worker_lanes set max_slots = 5", nothing))
            proxy.blackhole()
            try:
                assert await asyncio.to_thread(_claim_at_last, db) == 1
            finally:
                proxy.heal()

    with pytest.raises(DatabaseUnavailable):
        await change()
    await database.close()


def _claim_at_last(db: StoreClient) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return len(db.claimed())
        except DatabaseUnavailable:
            assert time.monotonic() < deadline, "the lane is still locked"


async def test_sessions_ask_the_server_to_notice_dead_clients(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {**TEST_SETTINGS, "listen_addresses": "127.0.0.1"}
    with EmbeddedPostgres(data_dir, settings=settings, port=port) as postgres:
        parts = urlsplit(postgres.dsn)
        place = f"{parts.username}:{parts.password}@127.0.0.1:{port}"
        dsn = urlunsplit(parts._replace(netloc=place, query=""))
        database = Database(dsn, Settings.load(database_url=dsn), role="tests dead")
        rows = await database.run(
            Text("select name, setting from pg_settings where name ~ '^tcp'", list)
        )
        await database.close()
    found = {name.removeprefix("tcp_"): int(setting) for name, setting in rows}
    assert 0 < found["user_timeout"] <= 5000
    idle_s = found["keepalives_idle"]
    probed_s = idle_s + found["keepalives_interval"] * found["keepalives_count"]
    assert 0 < idle_s < probed_s <= 5
