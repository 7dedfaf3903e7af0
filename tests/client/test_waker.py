"""Wake-ups: after the commit, coalesced, the last one never lost."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
import pytest

from laneway.client import Client
from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable
from laneway.store import notify
from laneway.store.database import Database
from laneway.store.waker import Waker
from laneway.testing.proxy import Proxy
from tests.support.driver_cancels import note_cancels
from tests.support.notifications import NotificationListener
from tests.support.server_address import address, through

pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for pending wake-ups, however slow the machine."""
    monkeypatch.setattr("laneway.store.waker.CLOSE_TIMEOUT_S", 60.0)


@pytest.fixture
def interval_ms() -> int:
    """The default; parametrized where it matters."""
    return 5


@pytest.fixture
def settings(settings: Settings, interval_ms: int) -> Settings:
    return settings.model_copy(update={"wake_interval_ms": interval_ms})


async def test_submit_wakes_and_a_duplicate_or_a_refusal_does_not(client: Client, dsn: str) -> None:
    async with NotificationListener(dsn) as listener:
        await client.submit("t", unique_key="k")
        await client.close()
        assert await listener.received() == ["wake t"]
        await client.submit("t", unique_key="k")
        await client.submit("t", wake=False)
        await client.submit_many([("t",)], wake=False)
        await client.close()
        assert await listener.received() == []
        await client.submit_many([("u",), ("t",), ("u",), ("t", {}, {"unique_key": "k"})])
        await client.close()
        assert await listener.received() == ["wake t\x1fu"]


@pytest.mark.parametrize("interval_ms", [3_600_000])
async def test_first_wake_up_is_sent_at_once(
    client: Client, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.waker.CLOSE_TIMEOUT_S", 0.05)
    async with NotificationListener(dsn) as listener:
        await client.submit("t")
        assert await listener.next() == "wake t"


@pytest.mark.parametrize("interval_ms", [100])
async def test_burst_of_submits_sends_few_notifications(client: Client, dsn: str) -> None:
    async with NotificationListener(dsn) as listener:
        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(client.submit(f"t{n % 7}") for n in range(200)))
        took = asyncio.get_running_loop().time() - started
        await client.close()
        received = await listener.received()
    assert len(received) <= took / 0.1 + 2
    names = {name for message in received for name in message.removeprefix("wake ").split("\x1f")}
    assert names == {f"t{n}" for n in range(7)}


async def test_last_wake_up_is_never_lost(settings: Settings, dsn: str) -> None:
    """At any time: while one is sent, while the interval runs, just after it."""
    database = Database(dsn, settings)
    waker = Waker(database, interval_ms=1)
    async with NotificationListener(dsn) as listener:
        for n in range(100):
            waker.wake([f"t{n}"])
            await asyncio.sleep(0.0002 * (n % 11))
        await waker.close()
        received = await listener.received()
    names = [name for message in received for name in message.removeprefix("wake ").split("\x1f")]
    assert sorted(names) == sorted(f"t{n}" for n in range(100))
    await database.close()


async def test_wake_up_comes_after_the_commit_so_that_the_job_is_there(
    client: Client, dsn: str
) -> None:
    async with (
        NotificationListener(dsn) as listener,
        await psycopg.AsyncConnection.connect(dsn) as other,
    ):
        await client.submit_many([("t", {"n": n}) for n in range(1000)])
        await listener.next()
        cursor = await other.execute("select count(*) from laneway.ready")
        assert await cursor.fetchone() == (1000,)


async def test_submit_with_conn_sends_no_wake_up_unless_requested(client: Client, dsn: str) -> None:
    async with (
        NotificationListener(dsn) as listener,
        await psycopg.AsyncConnection.connect(dsn) as conn,
    ):
        await client.submit("t", conn=conn)
        await client.submit_many([("t",)], conn=conn)
        await conn.commit()
        assert await listener.received() == []
        await client.submit("t", conn=conn, wake=True)
        await client.submit_many([("u",), ("v",)], conn=conn, wake=True)
        assert await listener.received() == []
        await conn.commit()
        assert await listener.received() == ["wake t", "wake u\x1fv"]


async def test_no_wake_up_is_sent_with_listen_off(settings: Settings, dsn: str) -> None:
    quiet = settings.model_copy(update={"listen": False})
    client = Client(Database(dsn, quiet), quiet)
    async with NotificationListener(dsn) as listener:
        job = await client.submit("t")
        await job.cancel()
        await client.submit_many([("t",)])
        await client.close()
        assert await listener.received() == []
    await client.database.close()


async def test_too_many_names_become_wake_all() -> None:
    assert notify.wake_message({f"type {n}" for n in range(2000)}) == "wake *"


async def test_failed_wake_up_is_dropped_and_logged_once(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Database) -> Any:
        raise DatabaseUnavailable("down")

    monkeypatch.setattr(Database, "connection", broken)
    caplog.set_level(logging.WARNING, "laneway")
    waker = Waker(client.database)
    for n in range(3):
        waker.wake([f"t{n}"])
        await waker.close()
    assert [record.getMessage() for record in caplog.records] == [
        "cannot send wake-ups, jobs start at the next poll: down"
    ]


async def test_closing_does_not_wait_for_a_database_that_hangs(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.waker.CLOSE_TIMEOUT_S", 0.05)
    cancels = note_cancels(monkeypatch)
    async with Proxy(*address(dsn)) as proxy:
        database = Database(through(proxy, dsn), settings)
        waker = Waker(database)
        proxy.swallow_when(b"pg_notify")
        waker.wake(["t"])
        async with asyncio.timeout(60):
            await proxy.swallowed.wait()
        await waker.close()
        assert database.in_use == 0
        await database.close()
    assert cancels == [], "each may take 10 s"


async def test_wake_ups_of_peers_are_sent_together_or_dropped_at_the_end(
    settings: Settings, dsn: str
) -> None:
    database = Database(dsn, settings)
    waker = Waker.of_peers(database)
    async with NotificationListener(dsn) as listener:
        for name in "ab":
            waker.wake([name])
            await asyncio.sleep(0)
        assert await listener.next() == "wake a\x1fb"
        waker.wake(["c"])
        await waker.close(send=False)
        assert await listener.received() == []
    await database.close()
