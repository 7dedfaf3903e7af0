"""The pool after refusals and interrupted statements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.control import jobs as control
from laneway.control import lanes as lane_verbs
from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    LanewayError,
    NotFound,
    Refused,
    UnreadableValue,
)
from laneway.store import jobs, lanes
from laneway.store.database import Database, run_sync
from laneway.store.statement import Statement, scalar

Act = Callable[[Database], Coroutine[Any, Any, Any]]


class Text(Statement[Any]):
    """A statement of this test."""

    @property
    def text(self) -> str:
        return self.name


PID = Text("select pg_backend_pid()", scalar)


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests pool")
    yield database
    await database.close()


async def _unknown_job(db: Database) -> None:
    await control.cancel(db, uuid4(), by="tests")


async def _lane_twice(db: Database) -> None:
    await lane_verbs.create(db, {"name": "system"}, by="tests")


async def _refused_midway(db: Database) -> None:
    async with db.joined() as joined:
        await joined.run(lanes.pause(True, "tests"))
        raise Refused("not now")


async def _wrong_by_the_databases_rules(db: Database) -> None:
    await db.run(jobs.reprioritize(uuid4(), 5))
    async with db.transaction() as transaction:
        await transaction.run(Text("select 'x'::integer", scalar))


async def _wrong_alone(db: Database) -> None:
    await db.run(Text("select 'x'::integer", scalar))


@pytest.mark.parametrize(
    "act, error",
    [
        (_unknown_job, NotFound),
        (_lane_twice, Refused),
        (_refused_midway, Refused),
        (_wrong_by_the_databases_rules, InvalidInput),
        (_wrong_alone, InvalidInput),
    ],
)
async def test_refusal_gives_its_connection_back_clean(
    database: Database, act: Act, error: type[LanewayError], dsn: str
) -> None:
    first = await database.run(PID)
    for _ in range(3):
        with pytest.raises(error):
            await act(database)
        assert database.idle == 1
    assert await database.run(PID) == first
    assert not (await database.run(lanes.read_gate())).paused
    with psycopg.connect(dsn, application_name="tests") as conn:
        open_now = conn.execute(
            "select count(*), count(*) filter (where state = 'idle') from pg_stat_activity"
            " where datname = current_database() and application_name = 'laneway tests pool'"
        ).fetchone()
    assert open_now == (1, 1)


async def test_cancelled_transaction_closes_its_connection(database: Database) -> None:
    first = await database.run(PID)

    async def cut_off() -> None:
        async with database.transaction() as transaction:
            await transaction.run(PID)
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await transaction.run(PID)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(cut_off())
    assert database.idle == 0
    assert await database.run(PID) != first
    with pytest.raises(DatabaseUnavailable):
        await database.run(Text("select pg_terminate_backend(pg_backend_pid())", scalar))
    assert database.idle == 0
    assert await database.run(PID)


async def test_value_that_cannot_be_read_is_not_blamed_on_a_payload(
    database: Database, dsn: str
) -> None:
    read = Text("select timestamptz '33715-01-01Z'", scalar)
    message = r"33715.*cannot read a stored value .*10K"
    with pytest.raises(UnreadableValue, match=message):
        await database.run(read)
    assert isinstance(await database.run(PID), int)
    with psycopg.connect(dsn) as conn, pytest.raises(UnreadableValue, match=message):
        run_sync(conn, read)


async def test_refused_value_is_named_payload_only_where_there_is_one(database: Database) -> None:
    with pytest.raises(InvalidInput, match=r"^value: PostgreSQL refuses it: invalid input syntax"):
        await database.run(Text("select 'x'::integer", scalar))
    given = Text("select %(payload)s::text::jsonb", scalar, {"payload": "{"})
    with pytest.raises(
        InvalidInput, match=r"^payload: PostgreSQL refuses it: invalid input syntax"
    ):
        await database.run(given)
