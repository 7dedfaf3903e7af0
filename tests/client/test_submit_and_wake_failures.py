"""A submit that sends its wake-up itself, when values, tasks or connections are unusual."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Iterator
from enum import Enum
from typing import Any

import psycopg
import pytest

from laneway.client import Client
from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable
from laneway.store.database import Database
from laneway.store.submit_and_wake import SubmitAndWake
from tests.support.driver_cancels import note_cancels
from tests.support.notifications import NotificationListener
from tests.support.worker_harness import wait_until

# Stores the settings that are in force when the transaction of a submit commits.
NOTE_COMMITS = """
create table laneway.commits (number serial, synchronous_commit text);
create function note_commit() returns trigger language plpgsql as $$
begin
    insert into laneway.commits (synchronous_commit)
    values (current_setting('synchronous_commit'));
    return null;
end $$;
create constraint trigger note_commit after insert on laneway.jobs deferrable initially deferred
for each row execute function note_commit()
"""
FORGET_COMMITS = """
drop trigger note_commit on laneway.jobs; drop function note_commit(); drop table laneway.commits
"""
WAITING = "select pid from pg_locks l join pg_database d on d.oid = l.database where not granted"


class Name(str, Enum):  # noqa: UP042 - `str` of a StrEnum is its value
    TYPE = "ingest"
    TAG = "a, b"


class Level(int, Enum):
    HIGH = 10


@pytest.fixture
async def quiet(client: Client, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """A client with an open connection and no wake-up under way; wake-ups may take a minute."""
    monkeypatch.setattr("laneway.store.waker.CLOSE_TIMEOUT_S", 60.0)
    await client.submit("first")
    await client.close()
    yield client
    await client.close()


@pytest.fixture
def other(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


def count(conn: psycopg.Connection[Any], job_type: str) -> int:
    query = "select count(*)::int from laneway.jobs where job_type = %s"
    row = conn.execute(query, [job_type]).fetchone()
    assert row is not None
    return int(row[0])


async def test_members_of_enums_are_stored_as_their_values(quiet: Client) -> None:
    handle = await quiet.submit(
        Name.TYPE,
        priority=Level.HIGH,
        tags=[Name.TAG],
        unique_key=Name.TAG,
        created_by=Name.TAG,
        delay=3600,
    )
    job = await quiet.get(handle.id)
    assert (job.job_type, job.priority, job.tags) == ("ingest", 10, ("a, b",))
    assert (job.unique_key, job.created_by) == ("a, b", "a, b")


async def test_submit_commits_with_the_setting_of_the_server(
    quiet: Client, other: psycopg.Connection[Any]
) -> None:
    other.execute(NOTE_COMMITS.encode())
    try:
        for _ in range(5):
            await quiet.submit("t")
            await quiet.close()
        await asyncio.gather(*(quiet.submit("t") for _ in range(8)))
        await quiet.close()
        rows = other.execute("select synchronous_commit from laneway.commits").fetchall()
        assert rows == [("on",)] * 13
    finally:
        other.execute(FORGET_COMMITS.encode())


async def test_connection_runs_all_other_statements_after_submits(
    quiet: Client, other: psycopg.Connection[Any]
) -> None:
    for _ in range(3):
        await quiet.submit("t")
        await quiet.close()
        await quiet.submit_many([("t", {"n": n}) for n in range(50)])
        async with quiet.database.connection() as conn, conn.pipeline():
            await conn.execute("select 1")
    assert count(other, "t") == 153


async def test_task_cancelled_before_it_begins_stops_no_later_wake_up(
    quiet: Client, dsn: str
) -> None:
    for submits in (1, 2):
        for _ in range(submits):
            await quiet.submit("a")
        _cancel_wake_ups()
        async with NotificationListener(dsn) as listener:
            await quiet.submit("b")
            await quiet.close()
            assert "wake b" in await listener.received()
        await wait_until(lambda: quiet.database.in_use == 0)


def _cancel_wake_ups() -> None:
    for task in asyncio.all_tasks():
        if task.get_name().startswith("laneway wake"):
            task.cancel()


def test_end_of_event_loop_with_wake_ups_due_logs_no_error(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings.load(database_url=dsn, wake_interval_ms=500)

    async def work(client: Client) -> None:
        await client.submit("a")
        await client.close()
        # The later ones are due when the program ends.
        for _ in range(3):
            await client.submit("a")

    for _ in range(2):
        database = Database(dsn, settings)
        asyncio.run(work(Client(database, settings)))
        # Tasks that never ended log an error when they are freed.
        gc.collect()
        asyncio.run(database.close())
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


async def test_lost_wake_up_of_an_analysis_is_sent_for_the_analysis(
    quiet: Client, dsn: str, other: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other.execute(
        "insert into laneway.job_types (name, published_at, has_analysis, approval)"
        " values ('planned', now(), true, 'always')"
    )
    finish = SubmitAndWake.finish

    async def finish_and_fail(self: SubmitAndWake) -> None:
        await finish(self)
        raise DatabaseUnavailable("lost")

    monkeypatch.setattr(SubmitAndWake, "finish", finish_and_fail)
    async with NotificationListener(dsn) as listener:
        assert (await quiet.submit("planned")).status == "pending"
        await quiet.close()
        assert await listener.received() == ["wake \x01planned"] * 2


async def test_closing_does_not_wait_for_a_wake_up_that_hangs(
    quiet: Client, other: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, hanging = SubmitAndWake.finish, asyncio.Event()

    async def finish_late(self: SubmitAndWake) -> None:
        await finish(self)
        hanging.set()
        await self.conn.execute("select pg_advisory_lock(1)")

    monkeypatch.setattr(SubmitAndWake, "finish", finish_late)
    other.execute("select pg_advisory_lock(1)")
    await quiet.submit("t")
    await hanging.wait()
    monkeypatch.setattr("laneway.store.waker.CLOSE_TIMEOUT_S", 0.05)
    cancels = note_cancels(monkeypatch)
    await quiet.close()
    assert cancels == [], "each may take 10 s"
    assert quiet.database.in_use == 0
    other.execute("select pg_advisory_unlock(1)")


@pytest.mark.parametrize("end", ["terminate", "cancel"])
async def test_submit_that_the_server_ends_stores_nothing_and_fails(
    quiet: Client, other: psycopg.Connection[Any], end: str
) -> None:
    for number in range(2):
        with other.transaction():
            other.execute("lock table laneway.jobs in exclusive mode")
            submit = asyncio.create_task(quiet.submit("t"))
            pid = await wait_until(lambda: next(iter(other.execute(WAITING).fetchall()), None))
            other.execute(f"select pg_{end}_backend(%s)".encode(), pid)
            with pytest.raises(DatabaseUnavailable):
                await asyncio.wait_for(submit, 60)
        await quiet.close()
        assert count(other, "t") == 0
        await quiet.submit("u")
        await quiet.close()
        assert count(other, "u") == number + 1
        assert quiet.database.in_use == 0


async def test_cancelled_submit_leaves_no_connection_in_use(
    quiet: Client, other: psycopg.Connection[Any]
) -> None:
    steps = 0
    is_done = False
    # Cancel after each number of passes of the event loop, until the submit ends before.
    while not is_done:
        submit = asyncio.create_task(quiet.submit("t", unique_key=str(steps)))
        for _ in range(steps):
            await asyncio.sleep(0)
        is_done = submit.done()
        submit.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await submit
        await quiet.close()
        assert quiet.database.in_use == 0
        assert (await quiet.submit("u", unique_key=str(steps))).duplicate is False
        await quiet.close()
        steps += 1
    assert count(other, "u") == steps
