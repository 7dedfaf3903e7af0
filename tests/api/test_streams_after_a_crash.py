"""Streams survive a crash of PostgreSQL, after which transaction ids repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI

from laneway.embedded import EmbeddedPostgres
from laneway.store import leases
from laneway.store.leases import Report
from laneway.store.migrate import migrate
from laneway.streams.event_reader import EventReader
from tests.api.conftest import People, serve
from tests.api.streaming import reading
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

MANY = 300


@pytest.fixture
def dsn(own_postgres: EmbeddedPostgres) -> str:
    migrate(own_postgres.dsn)
    with psycopg.connect(own_postgres.dsn, autocommit=True) as conn:
        # Only commits write to the disk.
        conn.execute("alter system set wal_writer_delay = '10s'")
        conn.execute("select pg_reload_conf()")
    return own_postgres.dsn


@asynccontextmanager
async def unread(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The event log is not read meanwhile."""
    held, may_read = 0, asyncio.Event()
    advance = EventReader.advance

    async def later(*given: Any) -> Any:
        nonlocal held
        held += 1
        await may_read.wait()
        return await advance(*given)

    monkeypatch.setattr(EventReader, "advance", later)
    app.state.hub.wake()
    await wait_until(lambda: held)
    yield
    may_read.set()


async def test_event_with_id_of_lost_transaction_is_sent_once(
    app: FastAPI,
    people: People,
    factory: JobFactory,
    own_postgres: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    async with (
        reading(app, viewer, path) as of_one,
        reading(app, viewer, "/events", topics=("jobs",)) as of_all,
    ):
        async with unread(app, monkeypatch):
            factory.run(leases.report([Report(claim, done=1.0)], []))
            lost = burn_numbers(factory.conn)
        *_, seen = await of_all.until("job.progressed")  # a change before it may be read late
        await of_one.until("job.progressed")

        await asyncio.to_thread(own_postgres.restart, "immediate")
        with psycopg.connect(own_postgres.dsn, autocommit=True) as conn:
            JobFactory(conn).settle(claim)
            assert number(conn) < lost, "no number was given out twice: this shows nothing"
        (last,) = await of_one.rest()
        (same,) = await of_all.until("job.completed")
    async for replica in serve(own_postgres.dsn):
        async with reading(replica, viewer, "/events", topics=("jobs",), last=seen.id) as of_all:
            opened, again = await of_all.until("job.completed")
    assert last.data == same.data == again.data
    assert opened.data["resumed"]


def burn_numbers(conn: psycopg.Connection[Any]) -> int:
    for _ in range(MANY):
        with conn.transaction(force_rollback=True):
            last = number(conn)
    return last


def number(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("select pg_current_xact_id()::text::bigint").fetchone()
    assert row is not None
    return int(row[0])
