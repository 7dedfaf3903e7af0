"""A submit that sends its wake-up itself: one message to the server, two transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from laneway.client import Client
from laneway.config.settings import Settings
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import InvalidInput
from laneway.store.database import Database
from laneway.store.migrate import migrate
from tests.support.notifications import NotificationListener
from tests.support.worker_harness import wait_until

pytestmark = pytest.mark.usefixtures("patient")

# Commits that wait for a standby hold the lock of NOTIFY, if they notify. Those of Laneway's
# sessions here do not wait for it.
NO_STANDBY = "alter system set synchronous_standby_names = ''"
MISSING_STANDBY = "alter system set synchronous_standby_names = 'missing'"
REFUSE_COMMITS = """
create function refuse() returns trigger language plpgsql as $$
begin raise exception 'no commit'; end $$;
create constraint trigger refuse after insert on laneway.jobs deferrable initially deferred
for each row when (new.job_type = 'refused') execute function refuse();
"""
ACCEPT_COMMITS = "drop trigger refuse on laneway.jobs; drop function refuse()"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for pending wake-ups, however slow the machine."""
    monkeypatch.setattr("laneway.store.waker.CLOSE_TIMEOUT_S", 60.0)


@pytest.fixture
async def quiet(client: Client) -> Client:
    """A client with an open connection and no wake-up under way."""
    await client.submit("first")
    await client.close()
    return client


@pytest.fixture
def other(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


def publish(conn: psycopg.Connection[Any], job_type: str, settings: str) -> None:
    conn.execute(
        f"insert into laneway.job_types (name, published_at) values ('{job_type}', now())".encode()
    )
    conn.execute(f"update laneway.job_types set {settings} where name = '{job_type}'".encode())


def count(conn: psycopg.Connection[Any], job_type: str) -> int:
    row = conn.execute(
        "select count(*) from laneway.jobs where job_type = %s", [job_type]
    ).fetchone()
    assert row is not None
    return int(row[0])


async def test_each_quiet_submit_sends_one_wake_up(quiet: Client, dsn: str) -> None:
    async with NotificationListener(dsn) as listener:
        handles = []
        for n in range(20):
            handles.append(await quiet.submit(f"t{n}", {"text": "ä\"'\\"}, tags=["a b", 'c"d']))
            await quiet.close()
        assert await listener.received() == [f"wake t{n}" for n in range(20)]
    for handle in handles:
        job = await quiet.get(handle.id)
        assert (job.payload, job.tags) == ({"text": "ä\"'\\"}, ("a b", 'c"d'))
        assert job.status == handle.status == "approved"


async def test_job_is_stored_when_its_wake_up_arrives(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    async with NotificationListener(dsn) as listener:
        for n in range(10):
            submit = asyncio.create_task(quiet.submit(f"t{n}"))
            assert await listener.next() == f"wake t{n}"
            assert count(other, f"t{n}") == 1
            await submit
            await quiet.close()


async def test_wake_ups_of_others_are_sent_after_a_submit_that_sends_its_own(
    quiet: Client, dsn: str
) -> None:
    async with NotificationListener(dsn) as listener:
        await asyncio.gather(*(quiet.submit(f"t{n}") for n in range(8)))
        await quiet.close()
        received = await listener.received()
    names = {name for message in received for name in message.removeprefix("wake ").split("\x1f")}
    assert names == {f"t{n}" for n in range(8)}


async def test_close_during_a_submit_sends_the_wake_ups_of_others(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    async with NotificationListener(dsn) as listener:
        with other.transaction():
            other.execute("lock table laneway.jobs in exclusive mode")
            submit = asyncio.create_task(quiet.submit("t"))
            await wait_until(lambda: _waits_for_lock(other))
            quiet.wake([(await quiet.submit("u", wake=False, conn=other))])
            close = asyncio.create_task(quiet.close())
        await asyncio.gather(submit, close)
        received = await listener.received()
    names = {name for message in received for name in message.removeprefix("wake ").split("\x1f")}
    assert names == {"t", "u"}


def _waits_for_lock(conn: psycopg.Connection[Any]) -> bool:
    row = conn.execute(
        "select exists (select from pg_locks l join pg_database d on d.oid = l.database"
        " where not l.granted and d.datname = current_database())"
    ).fetchone()
    return row is not None and bool(row[0])


async def test_session_without_its_prepared_statements_stores_one_job(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    async with NotificationListener(dsn) as listener:
        for n in range(3):
            async with quiet.database.connection() as conn:
                await conn.execute("deallocate all")
            await quiet.submit("t", {"n": n})
            await quiet.close()
        received = await listener.received()
    assert count(other, "t") == 3
    assert set(received) == {"wake t"}
    assert len(received) >= 3


async def test_refused_submit_leaves_its_connection_in_use(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    publish(other, "reviewed", "two_person = true, approval = 'always'")
    async with quiet.database.connection() as conn:
        before = conn.info.backend_pid
    for _ in range(3):
        with pytest.raises(InvalidInput, match="created_by"):
            await quiet.submit("reviewed")
        await quiet.close()
    async with NotificationListener(dsn) as listener:
        await quiet.submit("t")
        await quiet.close()
        assert await listener.received() == ["wake t"]
    async with quiet.database.connection() as conn:
        assert conn.info.backend_pid == before
    assert count(other, "reviewed") == 0


async def test_commit_that_fails_raises_its_error_and_stores_nothing(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    other.execute(REFUSE_COMMITS.encode())
    try:
        async with asyncio.timeout(60):
            for _ in range(2):
                with pytest.raises(psycopg.errors.RaiseException, match="no commit"):
                    await quiet.submit("refused")
                await quiet.close()
            await quiet.submit("t")
    finally:
        other.execute(ACCEPT_COMMITS.encode())
    assert (count(other, "refused"), count(other, "t")) == (0, 1)


async def test_job_that_awaits_an_approval_wakes_no_worker(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    publish(other, "reviewed", "approval = 'always'")
    async with NotificationListener(dsn) as listener:
        for _ in range(2):
            assert (await quiet.submit("reviewed")).status == "awaiting_approval"
            await quiet.close()
        assert await listener.received() == []


async def test_duplicate_and_refused_submits_wake_no_worker(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    publish(other, "reviewed", "two_person = true, approval = 'always'")
    first = await quiet.submit("t", unique_key="k", tags=["a"], delay=3600)
    await quiet.close()
    async with NotificationListener(dsn) as listener:
        again = await quiet.submit("t", unique_key="k")
        await quiet.close()
        with pytest.raises(InvalidInput, match="created_by"):
            await quiet.submit("reviewed")
        await quiet.submit("u", after=[first])
        await quiet.close()
        assert await listener.received() == []
    assert again.duplicate
    assert again.id == first.id


async def test_submit_of_an_analysed_type_wakes_its_analysis(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    publish(other, "planned", "has_analysis = true, approval = 'always'")
    async with NotificationListener(dsn) as listener:
        for _ in range(2):
            assert (await quiet.submit("planned")).status == "pending"
            await quiet.close()
            assert await listener.received() == ["wake \x01planned"]


async def test_cancelled_submit_does_not_stop_later_ones(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    with other.transaction():
        other.execute("lock table laneway.jobs in exclusive mode")
        submit = asyncio.create_task(quiet.submit("t"))
        await wait_until(lambda: _waits_for_lock(other))
        submit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submit
    async with NotificationListener(dsn) as listener:
        await quiet.submit("u")
        await quiet.close()
        assert "wake u" in await listener.received()


async def test_lost_connection_is_replaced_before_the_submit(
    quiet: Client, dsn: str, other: psycopg.Connection[Any]
) -> None:
    async with quiet.database.connection() as conn:
        pid = conn.info.backend_pid
    other.execute("select pg_terminate_backend(%s, 60000)", [pid])
    async with NotificationListener(dsn) as listener:
        await quiet.submit("t")
        await quiet.close()
        assert await listener.received() == ["wake t"]
    assert count(other, "t") == 1


# The lock of NOTIFY --------------------------------------------------------------------------


@asynccontextmanager
async def held_lock(dsn: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A commit that holds the lock of NOTIFY, because it waits for a standby."""
    async with (
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as admin,
        await psycopg.AsyncConnection.connect(dsn) as holder,
    ):
        await admin.execute("set synchronous_commit = local")
        await admin.execute("create table committed ()")
        await admin.execute(MISSING_STANDBY)
        await admin.execute("select pg_reload_conf()")
        while True:
            await holder.execute("set synchronous_commit = on")
            await holder.execute("insert into committed default values")
            await holder.execute("select pg_notify('elsewhere', '')")
            commit = asyncio.create_task(holder.commit())
            # The server's processes read the new setting one after the other.
            await wait_until(partial(_is_held, admin, commit))
            if not commit.done():
                break
        try:
            yield admin
        finally:
            await admin.execute(NO_STANDBY)
            await admin.execute("select pg_reload_conf()")
            await commit


async def _is_held(conn: psycopg.AsyncConnection[Any], commit: asyncio.Task[None]) -> bool:
    cursor = await conn.execute("select from pg_stat_activity where wait_event = 'SyncRep'")
    return commit.done() or await cursor.fetchone() is not None


async def _until(conn: psycopg.AsyncConnection[Any], condition: str) -> int:
    """Wait for a session in this condition; return its process."""

    async def look() -> int | None:
        cursor = await conn.execute(f"select pid from pg_stat_activity where {condition}".encode())
        row = await cursor.fetchone()
        return None if row is None else int(row[0])

    return int(await wait_until(look))


LOCKED = "application_name like 'laneway %' and wait_event_type = 'Lock'"


@pytest.fixture
async def own_client(own_postgres: EmbeddedPostgres) -> AsyncIterator[Client]:
    """A quiet client whose commits do not wait for a standby."""
    migrate(own_postgres.dsn)
    with psycopg.connect(own_postgres.dsn, autocommit=True) as conn:
        local = f'alter database "{conn.info.dbname}" set synchronous_commit = local'
        conn.execute(local.encode())
    settings = Settings.load(database_url=own_postgres.dsn)
    client = Client(Database(own_postgres.dsn, settings), settings)
    await client.submit("first")
    await client.close()
    yield client
    await client.close()
    await client.database.close()


async def test_submit_does_not_wait_for_the_lock_of_notify(
    own_client: Client, own_postgres: EmbeddedPostgres
) -> None:
    dsn = own_postgres.dsn
    async with NotificationListener(dsn) as listener:
        async with held_lock(dsn) as admin:
            async with asyncio.timeout(60):
                handles = [await own_client.submit(f"t{n}") for n in range(5)]
            await _until(admin, LOCKED)
            cursor = await admin.execute(
                "select count(*) from laneway.ready join laneway.jobs using (seq)"
                " where id = any (%s)",
                [[handle.id for handle in handles]],
            )
            assert await cursor.fetchone() == (5,)
        await own_client.close()
        received = await listener.received()
    names = {name for message in received for name in message.removeprefix("wake ").split("\x1f")}
    assert names == {f"t{n}" for n in range(5)}


async def test_wake_up_whose_connection_is_lost_is_sent_on_another(
    own_client: Client, own_postgres: EmbeddedPostgres
) -> None:
    dsn = own_postgres.dsn
    async with NotificationListener(dsn) as listener:
        async with held_lock(dsn) as admin:
            async with asyncio.timeout(60):
                await own_client.submit("t")
            pid = await _until(admin, LOCKED)
            await admin.execute("select pg_terminate_backend(%s, 60000)", [pid])
        await own_client.close()
        assert await listener.received() == ["wake t"]
