"""Two replicas on one database: what happens at the one is noticed at the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from laneway.config.settings import Settings
from laneway.control import explain
from laneway.domain.overview import RoomUse
from laneway.rpc.server.handshake import ServedType
from laneway.store import workers
from laneway.store.database import Database
from tests.rpc.dispatch_harness import DispatchHarness, handshake, notify, settle
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until


@pytest.fixture
async def docks(dsn: str, settings: Settings) -> AsyncIterator[list[DispatchHarness]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(DispatchHarness(dsn, settings)) for _ in range(2)]


async def test_newer_stream_at_another_replica_ends_the_older_one(
    docks: list[DispatchHarness], factory: JobFactory
) -> None:
    here, there = docks
    older = await here.connect()
    newer = await there.connect(older.handshake)
    await older.over()
    assert older.dispatcher.end == "replaced"
    # Its goodbye is not the worker's.
    await here.replica.presence.run_once()
    await there.replica.presence.run_once()
    row = factory.conn.execute(
        "select session, stopped_at from laneway.workers where id = %s", [older.id]
    ).fetchone()
    assert row == (newer.dispatcher.stream_id, None)


async def test_polling_replica_learns_of_newer_stream(
    dsn: str, settings: Settings, factory: JobFactory
) -> None:
    deaf = settings.model_copy(update={"listen": False})
    async with DispatchHarness(dsn, deaf) as here, DispatchHarness(dsn, deaf) as there:
        older = await here.connect()
        await there.connect(older.handshake)
        here.replica.presence.touch_now()
        await older.over()
        assert older.dispatcher.end == "replaced"


async def test_older_stream_claims_nothing_and_learns_by_that_of_the_newer_one(
    dsn: str, settings: Settings, factory: JobFactory
) -> None:
    deaf = settings.model_copy(update={"listen": False})
    async with DispatchHarness(dsn, deaf) as here, DispatchHarness(dsn, deaf) as there:
        older = await here.connect()
        await here.replica.presence.cancel()
        await there.connect(replace(older.handshake, max_in_flight=0))
        factory.submit("t")
        here.replica.round_robin.wake(["t"])
        await older.over()
        assert older.dispatcher.end == "replaced"
        assert factory.conn.execute("select attempt from laneway.ready").fetchall() == [(0,)]


async def test_drained_worker_stays_drained_after_reconnect(
    docks: list[DispatchHarness], factory: JobFactory
) -> None:
    here, there = docks
    client = await here.connect()
    factory.conn.execute(
        "update laneway.workers set drain_requested_at = now(), drain_requested_by = 'ann'"
        " where id = %s",
        [client.id],
    )
    notify(factory, f"drain {client.id}")
    await wait_until(lambda: client.dispatcher.is_drained)
    again = await there.connect(client.handshake)
    assert again.dispatcher.is_drained
    factory.submit("t")
    await there.replica.poller.run_once()
    assert not again.jobs
    factory.conn.execute(
        "update laneway.workers set drain_requested_at = null, drain_requested_by = null"
    )
    there.replica.presence.touch_now()
    await again.got(1)


async def test_worker_that_changes_replica_keeps_held_jobs(
    docks: list[DispatchHarness], factory: JobFactory
) -> None:
    here, there = docks
    for _ in range(2):
        factory.submit("t")
    client = await here.connect(handshake(max_in_flight=2))
    kept, lost = await client.got(2)
    await client.disconnect()
    holds = frozenset({(kept.claim.job_id, kept.claim.attempt)})
    moved = await there.connect(replace(client.handshake, holds=holds))
    (again,) = await moved.got(1)
    assert (again.claim.job_id, again.claim.attempt) == (lost.claim.job_id, 2)
    assert moved.dispatcher.room.in_use == 2
    (answer,) = await settle(there.replica, [kept.claim])
    assert answer.answer == "accepted"


async def test_results_given_to_another_replica_give_the_room_back(
    docks: list[DispatchHarness], factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.rpc.server.presence.FULL_S", 0.0)
    here, there = docks
    for _ in range(4):
        factory.submit("t")
    client = await here.connect(handshake(max_in_flight=2))
    claims = [job.claim for job in await client.got(2)]
    await settle(there.replica, claims)
    here.replica.presence.wake()
    await client.got(4)
    await client.end()
    assert client.dispatcher.room.in_use <= 2


async def test_unknown_lease_is_released(
    docks: list[DispatchHarness], factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.rpc.server.presence.STRAY_S", 0.0)
    here, _ = docks
    client = await here.connect(handshake("other"))
    # As if its claim had been committed and the answer lost.
    factory.worker_id = client.id
    factory.running("t")
    here.replica.presence.touch_now()
    query = "select outcome from laneway.attempts"
    assert await wait_until(lambda: factory.conn.execute(query).fetchall()) == [("released",)]


async def test_job_that_was_taken_back_gives_the_room_back(
    docks: list[DispatchHarness], factory: JobFactory
) -> None:
    here, _ = docks
    factory.submit("t")
    client = await here.connect(handshake(max_in_flight=1))
    (job,) = await client.got(1)
    factory.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"
    )
    query = "select outcome from laneway.attempts"
    assert await wait_until(lambda: factory.conn.execute(query).fetchall()) == [("lost",)]
    here.replica.presence.touch_now()
    await wait_until(lambda: client.dispatcher.room.in_use == 0)
    (answer,) = await settle(here.replica, [job.claim])
    assert answer.answer == "fenced"


async def test_explain_names_remote_worker_that_is_full(
    docks: list[DispatchHarness], factory: JobFactory, database: Database
) -> None:
    here, _ = docks
    stream = await here.connect(handshake(max_in_flight=1))
    factory.submit("t")
    await stream.got(1)
    job_id = factory.submit("t")

    async def is_told() -> bool:
        here.replica.presence.touch_now()
        explained = await explain.explain(database, job_id)
        return explained.reasons[0].code == "workers_full"

    await wait_until(is_told)
    room = factory.run(workers.listing(stream.id))[0].room
    assert room["async"] == RoomUse(1, 1)


async def test_explain_names_slots_of_remote_worker_that_is_at_them(
    docks: list[DispatchHarness], factory: JobFactory, database: Database
) -> None:
    here, _ = docks
    types = (ServedType("t", "async", False, None), ServedType("u", "thread", False, None))
    factory.publish("u")
    factory.conn.execute("update laneway.job_types set isolation = 'thread' where name = 'u'")
    stream = await here.connect(handshake(*types, max_in_flight=1, max_async=4, max_threads=4))
    factory.submit("t")
    await stream.got(1)
    job_id = factory.submit("u")

    async def is_named() -> bool:
        here.replica.presence.touch_now()
        found = await explain.explain(database, job_id)
        return "(slots 1 of 1, since" in found.reasons[0].message

    await wait_until(is_named)
    assert factory.run(workers.listing(stream.id))[0].room["slots"] == RoomUse(1, 1)


async def test_explain_reports_stopping_remote_worker(
    docks: list[DispatchHarness], factory: JobFactory, database: Database
) -> None:
    here, _ = docks
    stream = await here.connect()
    await here.connect(replace(stream.handshake, max_in_flight=0))
    job_id = factory.submit("t")
    found = await explain.explain(database, job_id)
    assert "workers_stopping" in [reason.code for reason in found.reasons]
    assert factory.run(workers.listing(stream.id))[0].is_stopping
