"""The event log is read to its end, in parts that fit into memory."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Any, TypeVar, cast
from uuid import uuid4

import psycopg
import pytest
from fastapi import FastAPI

from laneway.config.settings import Settings
from laneway.domain.event import EVERY_JOB, Cursor, Event, LogPosition
from laneway.domain.permissions import Access, Grant
from laneway.errors import DatabaseUnavailable
from laneway.store import events, jobs
from laneway.store.database import Database
from laneway.store.statement import Statement
from laneway.streams import frames
from laneway.streams.event_reader import EventReader, between
from laneway.streams.frames import Rendering
from laneway.streams.stream import JobStream
from tests.api.conftest import People
from tests.api.streaming import reading
from tests.support.job_factory import JobFactory

T = TypeVar("T")
MOST = 50


class Watched(Database):
    """Counts jobs that are read but not yet sent, and fails on request."""

    untold = most = 0
    fails_at = -1

    async def run(self, statement: Statement[T]) -> T:
        if statement.name == "events/read_jobs":
            self.fails_at -= 1
            if self.fails_at == 0:
                raise DatabaseUnavailable("gone for a moment")
            self.untold += len(cast("list[int]", statement.params["seqs"]))
            self.most = max(self.most, self.untold)
        return await super().run(statement)


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Watched]:
    made = Watched(dsn, Settings.load(database_url=dsn), role="tests api")
    yield made
    await made.close()


async def test_reader_holds_few_jobs_and_sends_each_once_despite_failures(
    database: Watched, factory: JobFactory
) -> None:
    """A payload may be a megabyte, and one batch may have hundreds of them."""
    await database.run(events.open_watches([EVERY_JOB], 60))
    await database.run(events.reconcile([EVERY_JOB]))
    tail = EventReader(database)
    await tail.begin()
    since = Cursor(tail.here, tail.here)
    ids = [factory.submit() for _ in range(3 * MOST)]
    sent: list[int] = []

    def tell(found: Any) -> None:
        database.untold = 0
        sent.append(found.event.seq)

    def is_wanted(event: Event) -> bool:
        return event.seq is not None

    database.fails_at = 3
    with pytest.raises(DatabaseUnavailable):
        await tail.advance(is_wanted, tell, tell)
    assert len(sent) == 2 * MOST
    ids.append(factory.submit())
    await tail.advance(is_wanted, tell, tell)
    assert len(sent) == len(set(sent)) == len(ids)
    assert database.most <= MOST

    database.untold = database.most = count = 0
    async for _ in between(database, since, tail.here, is_wanted, lambda event: False):
        database.untold = 0
        count += 1
    assert count == len(ids)
    assert database.most <= MOST


async def test_way_back_of_exactly_a_page_has_an_end(
    app: FastAPI, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    async with reading(app, viewer, path) as stream:
        first = await stream.next()
        assert first is not None
    log_again(conn, events.PAGE)
    async with reading(app, viewer, path, last=first.id) as stream:
        factory.settle(claim)
        heard = await stream.rest()
    assert len(heard) == events.PAGE + 1
    assert [e.number for e in heard] == sorted({e.number for e in heard})
    assert heard[-1].name == "job.completed"


async def test_long_way_back_is_written_as_it_is_read(
    app: FastAPI,
    factory: JobFactory,
    conn: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claim = factory.running()
    (seq,) = (await app.state.database.run(events.numbers([claim.job_id]))).values()
    (first,) = (await joined(app, seq, None))[1] or [None]
    assert first is not None
    log_again(conn, 20)
    written: list[Any] = []
    monkeypatch.setattr(frames, "job_at", lambda *what, **how: written.append(what))
    _, sent = await joined(app, seq, LogPosition(first.event.id))
    assert sent is not None
    assert (len(sent), len(written)) == (20, 0)
    assert b"job.progressed" in sent[0].job_frame(None, debug=False)
    assert len(written) == 1


async def test_job_that_was_deleted_meanwhile_has_no_stream_without_end(
    app: FastAPI, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    """A reader found it a moment ago."""
    job_id = factory.submit()
    (seq,) = (await app.state.database.run(events.numbers([job_id]))).values()
    (first,) = (await joined(app, seq, None))[1] or [None]
    assert first is not None
    factory.run(jobs.cancel(job_id, "me", None))
    factory.run(jobs.delete(job_id))
    log_again(conn, 1)
    stream, sent = await joined(app, seq, LogPosition(first.event.id))
    assert not sent
    assert stream.is_ended


async def joined(
    app: FastAPI, seq: int, last: LogPosition | None
) -> tuple[JobStream, deque[Rendering] | None]:
    """A started stream, and its first events."""
    grant = Grant(frozenset({"jobs:read"}), "all")
    stream = JobStream(Access(uuid4(), "v", "person", (grant,)), None, seq)
    app.state.hub.enter(stream)
    sent = await app.state.hub.join_job(stream, last)
    app.state.hub.leave(stream)
    return stream, sent


def log_again(conn: psycopg.Connection[Any], times: int) -> None:
    """Repeat the newest event of the only watched job."""
    conn.execute(
        "insert into laneway.events (seq, name, workspace, lane, job_type, created_by, state)"
        " select e.seq, 'job.progressed', e.workspace, e.lane, e.job_type, e.created_by, e.state"
        " from (select * from laneway.events order by id desc limit 1) e,"
        " generate_series(1, %s)",
        [times],
    )
