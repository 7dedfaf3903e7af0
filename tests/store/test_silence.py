"""Silent connections are detected and replaced; slow ones are kept."""

from __future__ import annotations

import asyncio
import fcntl
import resource
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable
from laneway.store import silence
from laneway.store.database import Database, connection_options
from laneway.store.notify import Listener
from laneway.store.statement import Statement, scalar
from laneway.store.sync_connection import SyncConnection
from laneway.testing.proxy import Proxy
from tests.support.driver_cancels import note_cancels
from tests.support.server_address import address, through
from tests.support.worker_harness import wait_until

SILENCE_S = 0.6
PATIENCE_S = 60.0
# For statements that a probe finds running, however long that takes on a busy machine.
UNHURRIED = {"silence_timeout": PATIENCE_S, "connect_timeout": 60, "statement_timeout": 600.0}


class Text(Statement[Any]):
    """A statement of a test."""

    @property
    def text(self) -> str:
        return self.name


ONE = Text("select 1", scalar)


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    async with Proxy(*address(dsn)) as opened:
        yield opened


@pytest.fixture
def far(dsn: str, proxy: Proxy) -> str:
    """The same database through the proxy."""
    return through(proxy, dsn)


@pytest.fixture
async def opened(far: str) -> AsyncIterator[Callable[..., Database]]:
    async with AsyncExitStack() as stack:

        def make(*, size: int = 1, wait_s: float | None = None, **more: Any) -> Database:
            settings = Settings.load(database_url=far, **{"silence_timeout": SILENCE_S, **more})
            database = Database(far, settings, role="tests", size=size, longest_wait_s=wait_s)
            stack.push_async_callback(database.close)
            return database

        yield make


async def run_until_probed(db: Database, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a statement that ends after its first probe; the pool has the settings `UNHURRIED`."""
    locked = Text("select 1 from pg_advisory_xact_lock(1)", scalar)
    waits = (
        "select 1 from pg_stat_activity"
        " where datname = current_database() and wait_event = 'advisory'"
    )
    loop = asyncio.get_running_loop()
    clock = loop.time
    with psycopg.connect(dsn, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(1)")
        running = asyncio.create_task(db.run(locked))
        await wait_until(lambda: holder.execute(waits).fetchone() and not unacknowledged(db))
        # The probe is due at once, and has as long as any other wait of a test.
        monkeypatch.setattr(loop, "time", lambda: clock() + PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while not (probes := probes_under_way()):  # noqa: ASYNC110 -- a timer starts them
                await asyncio.sleep(0)
            await asyncio.wait(probes)
    return await running


def unacknowledged(db: Database) -> int:
    """Bytes whose acknowledgement would count as moving; it may take 40 ms."""
    sizes = [fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)) for fd in db.fds()]
    return sum(int.from_bytes(size, sys.byteorder) for size in sizes)


def probes_under_way() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "laneway silence"]


async def test_statement_whose_answer_was_lost_fails_and_the_next_works(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    db = opened()
    assert await db.run(ONE) == 1
    assert proxy.swallow() == 1
    with pytest.raises(DatabaseUnavailable, match="stopped responding"):
        await asyncio.wait_for(db.run(ONE), PATIENCE_S)
    assert await db.run(ONE) == 1


async def test_dead_connection_takes_the_idle_ones_along(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    db = opened(size=3)
    await asyncio.gather(*(db.run(Text("select pg_sleep(0.1)", scalar)) for _ in range(3)))
    assert proxy.swallow() == db.idle == 3
    with pytest.raises(DatabaseUnavailable, match="stopped responding"):
        await db.run(ONE)
    assert db.idle == 0
    assert await db.run(ONE) == 1


async def test_other_pools_of_the_process_do_not_wait_for_their_dead_connections(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    first, second = opened(), opened()
    for db in (first, second):
        await db.run(ONE)
    assert proxy.swallow() == 2
    with pytest.raises(DatabaseUnavailable, match="stopped responding"):
        await first.run(ONE)
    assert await second.run(ONE) == 1
    # Newer connections are reused.
    pid = Text("select pg_backend_pid()", scalar)
    assert await second.run(pid) == await second.run(pid)


async def test_statement_that_the_server_works_on_is_waited_for(
    opened: Callable[..., Database], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await run_until_probed(opened(**UNHURRIED), dsn, monkeypatch) == 1


async def test_running_statement_outlives_the_time_for_its_probe(
    opened: Callable[..., Database], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "RECHECK_S", 2 * PATIENCE_S)
    assert await run_until_probed(opened(**UNHURRIED), dsn, monkeypatch) == 1


async def test_statement_is_waited_for_if_the_server_refuses_its_probe(
    opened: Callable[..., Database], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the role might not read pg_stat_activity.
    monkeypatch.setattr(silence, "ACTIVITY", b"select %s / 0")
    assert await run_until_probed(opened(**UNHURRIED), dsn, monkeypatch) == 1


def test_connection_is_closed_without_a_free_file_descriptor(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            silence.hang_up(conn)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        with pytest.raises(psycopg.OperationalError):
            conn.execute("select 1")


async def test_running_statement_is_kept_without_a_file_descriptor_for_its_probe(
    opened: Callable[..., Database],
) -> None:
    db = opened(silence_timeout=1.0)
    assert await db.run(ONE) == 1
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
    try:
        assert await db.run(Text("select 1 from pg_sleep(2.5)", scalar)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_no_probe_outlives_the_statement_that_it_is_for(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    db = opened()
    proxy.swallow_when(b"from pg_catalog.pg_stat_activity where pid")
    slow = asyncio.create_task(db.run(Text("select 1 from pg_sleep(600)", scalar)))
    async with asyncio.timeout(PATIENCE_S):
        await proxy.swallowed.wait()
    slow.cancel()
    # On a slow machine the probe's own time is over first.
    with pytest.raises((asyncio.CancelledError, DatabaseUnavailable)):
        await slow
    assert not probes_under_way()


async def test_transaction_that_its_owner_leaves_idle_is_left_alone(
    opened: Callable[..., Database],
) -> None:
    db = opened()
    async with db.transaction() as transaction:
        await transaction.run(ONE)
        await asyncio.sleep(3 * SILENCE_S)
        assert await transaction.run(ONE) == 1


async def test_large_answer_over_a_slow_network_is_waited_for(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    db = opened()
    await db.run(ONE)
    # The server has finished long before: its response waits in network buffers.
    proxy.delay(0.2)
    large = Text("select repeat('x', 1000000)", scalar)
    assert len(await db.run(large)) == 1_000_000


async def test_in_a_network_that_is_gone_a_statement_fails(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    db = opened(connect_timeout=2)
    await db.run(ONE)
    proxy.blackhole()
    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(db.run(ONE), PATIENCE_S)
    proxy.heal()
    assert await db.run(ONE) == 1


async def test_session_behind_pooler_is_found_by_name(
    opened: Callable[..., Database], proxy: Proxy
) -> None:
    db = opened(pooler=True, statement_timeout=600.0)
    await db.run(ONE)
    proxy.swallow()
    with pytest.raises(DatabaseUnavailable, match="stopped responding"):
        await asyncio.wait_for(db.run(ONE), PATIENCE_S)
    assert await db.run(ONE) == 1


async def test_running_statement_behind_pooler_is_waited_for(
    opened: Callable[..., Database], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await run_until_probed(opened(pooler=True, **UNHURRIED), dsn, monkeypatch) == 1


async def test_statement_timeout_ends_silent_call_without_session_name(
    opened: Callable[..., Database], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "unique_name", lambda name: name)
    db = opened(pooler=True, statement_timeout=1.0)
    await db.run(ONE)
    proxy.swallow()
    with pytest.raises(DatabaseUnavailable, match="stopped responding"):
        await asyncio.wait_for(db.run(ONE), PATIENCE_S)


async def test_caller_waits_for_a_connection_no_longer_than_allowed(
    opened: Callable[..., Database],
) -> None:
    db = opened(wait_s=0.1)
    async with db.connection():
        with pytest.raises(DatabaseUnavailable, match=r"in use for 0\.1 s"):
            await db.run(ONE)
    assert (db.in_use, db.waiting) == (0, 0)
    assert await db.run(ONE) == 1


async def test_sync_connection_gives_up_a_silent_server(far: str, proxy: Proxy) -> None:
    settings = Settings.load(database_url=far)
    connection = SyncConnection(far, connection_options(far, settings, "tests"))
    assert await asyncio.to_thread(connection.run, ONE, PATIENCE_S) == 1
    proxy.swallow()
    with pytest.raises(DatabaseUnavailable):
        await asyncio.to_thread(connection.run, ONE, SILENCE_S)
    assert await asyncio.to_thread(connection.run, ONE, PATIENCE_S) == 1
    connection.close()


async def test_listener_notices_that_its_connection_is_dead(
    far: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.notify.PING_S", 0.1)
    settings = Settings.load(database_url=far, silence_timeout=SILENCE_S)
    listener = Listener(far, settings, lambda text: None)

    def swallow() -> None:
        proxy.swallow()

    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(listener.listen(swallow), PATIENCE_S)
    assert not listener.is_listening


async def test_end_of_a_listener_does_not_wait_for_a_lost_answer(
    far: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.notify.PING_S", 0.1)
    cancels = note_cancels(monkeypatch)
    listener = Listener(far, Settings.load(database_url=far), lambda text: None)
    proxy.swallow_when(b"select 1")
    listening = asyncio.create_task(listener.listen(lambda: None))
    async with asyncio.timeout(PATIENCE_S):
        await proxy.swallowed.wait()
    listening.cancel()
    # On a slow machine the ping's own time is over first.
    with pytest.raises((asyncio.CancelledError, DatabaseUnavailable)):
        await listening
    assert cancels == [], "each may take 10 s"
