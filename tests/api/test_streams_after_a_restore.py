"""Streams that stay open while the database is replaced by an older copy of itself.

A restored database takes its numbers up again where the copy was made: of events, of jobs, and in
another cluster of transactions. What they meant to a reader before, they do not mean any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest
from fastapi import FastAPI

from laneway.store import leases
from laneway.store.leases import Report
from tests.api.conftest import People, Principal
from tests.api.streaming import Reading, StreamEvent, reading
from tests.conftest import Server
from tests.support.job_factory import JobFactory


class Copies:
    """Copies the database of a test, and replaces it with the copy."""

    def __init__(self, server: Server, dsn: str) -> None:
        self._server = server
        self._dsn = dsn
        self._name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        self.copy = f"{self._name}_copy"
        self._conns: list[psycopg.Connection[tuple[object, ...]]] = []

    def dump(self) -> None:
        admin = self._server.admin
        admin.execute(f'alter database "{self._name}" allow_connections false')
        admin.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s",
            [self._name],
        )
        self._server.create(self.copy, str(self._name))
        admin.execute(f'alter database "{self._name}" allow_connections true')

    def restore(self) -> None:
        self._server.drop(str(self._name))
        self._server.admin.execute(f'alter database "{self.copy}" rename to "{self._name}"')

    def factory(self) -> JobFactory:
        """A direct connection to the database; a copy ends earlier connections."""
        self._conns.append(psycopg.connect(self._dsn, autocommit=True, application_name="tests"))
        return JobFactory(self._conns[-1])

    def close(self) -> None:
        for conn in self._conns:
            conn.close()
        self._server.drop(self.copy)


@pytest.fixture
def copies(postgres: Server, dsn: str) -> Iterator[Copies]:
    made = Copies(postgres, dsn)
    yield made
    made.close()


async def test_end_with_a_number_that_was_used_before_reaches_its_reader(
    app: FastAPI, people: People, factory: JobFactory, copies: Copies
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    async with (
        reading(app, viewer, path) as of_one,
        reading(app, viewer, "/events", topics=("jobs",)) as of_all,
    ):
        await asyncio.to_thread(copies.dump)
        factory = copies.factory()
        for done in range(1, 6):
            factory.run(leases.report([Report(claim, done=float(done))], []))
            heard = await of_one.until("job.progressed")
        at = await of_all.until("job.progressed")
        await asyncio.to_thread(copies.restore)
        copies.factory().settle(claim)
        ends = await until_end(app, viewer, path, of_one, heard[-1])
        assert ends[-1].data["status"] == "completed"
        await of_all.rest()
    async with reading(app, viewer, "/events", topics=("jobs",), last=at[-1].id) as of_all:
        opened = await of_all.next()
    assert opened is not None
    assert not opened.data["resumed"]


async def test_end_of_a_job_whose_watch_is_not_in_the_copy_reaches_its_reader(
    app: FastAPI, people: People, factory: JobFactory, copies: Copies
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    await asyncio.to_thread(copies.dump)
    async with reading(app, viewer, path) as stream:
        first = await stream.next()
        assert first is not None
        await asyncio.to_thread(copies.restore)
        copies.factory().settle(claim)
        ends = await until_end(app, viewer, path, stream, first)
    assert ends[-1].data["status"] == "completed"


async def test_place_in_another_log_is_not_taken_for_one_in_this(
    app: FastAPI, people: People, factory: JobFactory, copies: Copies
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    async with reading(app, viewer, path) as stream:
        await stream.next()
    await asyncio.to_thread(copies.dump)
    async with reading(app, viewer, path) as stream:
        copies.factory().run(leases.report([Report(claim, done=1.0)], []))
        (*_, last) = await stream.until("job.progressed")
    await asyncio.to_thread(copies.restore)
    # The same number for the same job, and it is its end.
    factory = copies.factory()
    factory.conn.execute("select setval('laneway.events_id_seq', %s, false)", [last.number])
    factory.settle(claim)
    async with reading(app, viewer, path, last=last.id) as stream:
        assert stream.status == 200
        (end,) = await until_end(app, viewer, path, stream, last)
    assert end.number == last.number
    assert end.name == "job.completed"


async def test_stream_never_shows_another_job_that_got_the_number_of_its_own(
    app: FastAPI, people: People, factory: JobFactory, copies: Copies
) -> None:
    viewer = people.new("v", "viewer")
    await asyncio.to_thread(copies.dump)
    mine = copies.factory().submit()
    async with reading(app, viewer, f"/jobs/{mine}/stream") as stream:
        first = await stream.next()
        assert first is not None
        await asyncio.to_thread(copies.restore)
        factory = copies.factory()
        other = factory.running()
        factory.settle(other)
        assert {UUID(heard.data["id"]) for heard in [first, *await stream.rest()]} == {mine}


async def until_end(
    app: FastAPI, viewer: Principal, path: str, stream: Reading, last: StreamEvent
) -> list[StreamEvent]:
    """The events of a reader that reconnects when the stream ends before the job."""
    heard = await stream.rest()
    if heard and heard[-1].name == "job.completed":
        return heard
    last = heard[-1] if heard else last
    async with reading(app, viewer, path, last=last.id) as stream:
        return await stream.rest()
