"""Jobs that a stream sends, and the release of unsent ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.rpc.server.assignment_queue import AssignmentQueue, QueuedAssignment
from laneway.rpc.server.claim_size import FIRST, ClaimSize
from laneway.rpc.server.handshake import ServedType
from laneway.store.database import run_sync
from laneway.store.leases import MAX_RANK, MIN_RANK, Assignment, Range, claim
from laneway.store.statement import Statement
from tests.rpc.dispatch_harness import DispatchHarness, handshake, notify
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

STEPS = "remote/read_steps"


@pytest.fixture
async def dispatch(dsn: str, settings: Settings) -> AsyncIterator[DispatchHarness]:
    async with DispatchHarness(dsn, settings) as dispatch:
        yield dispatch


def leases(factory: JobFactory) -> int:
    row = factory.conn.execute("select count(*) from laneway.lease").fetchone()
    assert row is not None
    return int(row[0])


def attempts(factory: JobFactory) -> list[tuple[Any, ...]]:
    return factory.conn.execute(
        "select outcome, attempt from laneway.attempts order by 1, 2"
    ).fetchall()


async def test_job_submitted_before_or_after_the_stream_opened_is_sent(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    early = factory.submit("t", payload='{"n": 1}')
    client = await dispatch.connect()
    (job,) = await client.got(1)
    assert job.claim.job_id == early
    assert job.id == str(early)
    assert (job.claim.attempt, job.job_type, job.payload) == (1, "t", '{"n": 1}')
    assert job.lease_ms == 30_000
    assert 0 < job.lease_left_ms <= 30_000
    late = factory.submit("t")
    dispatch.replica.poller.wake()
    await client.got(2)
    assert client.jobs[1].claim.job_id == late
    answers = await client.end()
    assert [(one.answer, one.status) for one in answers] == [("accepted", "completed")] * 2
    assert not leases(factory)


async def test_room_comes_back_with_results_and_is_never_exceeded(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(25):
        factory.submit("t")
    client = await dispatch.connect(handshake(max_in_flight=4))
    ended = 0
    while ended < 25:
        await client.got(min(4, 25 - ended))
        assert len(client.jobs) <= 4
        assert leases(factory) <= 4
        ended += len(await client.end(count=3))
    assert not client.jobs


async def test_lanes_and_isolations_together_never_exceed_the_room_of_a_stream(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for lane in ("a", "b", "c"):
        factory.conn.execute(
            "insert into laneway.worker_lanes (name, job_types, max_slots) values (%s, %s, null)",
            [lane, [lane]],
        )
    for _ in range(6):
        for job_type in ("a", "b", "c"):
            factory.submit(job_type)
    types = [
        ServedType("a", "async", False, None),
        ServedType("b", "thread", False, None),
        ServedType("c", "process", False, None),
    ]
    for most in (2, 5):
        client = await dispatch.connect(handshake(*types, max_in_flight=most, max_threads=1))
        done = 0
        while done < 7:
            await client.got(1)
            assert len(client.jobs) <= most
            assert leases(factory) <= most
            assert sum(1 for job in client.jobs if job.job_type == "b") <= 1
            done += len(await client.end(count=1))
        await client.disconnect()
        for job in client.jobs:
            factory.settle(job.claim)


async def test_unsent_jobs_are_released_at_stream_end(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(3):
        factory.submit("t")
    client = await dispatch.connect_without_reading()
    await wait_until(lambda: leases(factory) == 3)
    await client.disconnect()
    await wait_until(lambda: leases(factory) == 0)
    assert attempts(factory) == [("released", 1)] * 3
    retries = factory.conn.execute("select retries from laneway.ready").fetchall()
    assert retries == [(0,)] * 3


async def tried_once(dispatch: DispatchHarness, factory: JobFactory) -> None:
    """A job that was begun before: its steps are read before it is sent again."""
    factory.submit("t")
    first = await dispatch.connect()
    await first.got(1)
    await first.disconnect()
    await first.end("release")


async def test_jobs_prepared_at_stream_end_are_released_unsent(
    dispatch: DispatchHarness, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tried_once(dispatch, factory)
    began, may_go_on = asyncio.Event(), asyncio.Event()
    run = dispatch.replica.database.run

    async def slow(statement: Statement[Any]) -> Any:
        if statement.name == STEPS:
            began.set()
            await may_go_on.wait()
        return await run(statement)

    monkeypatch.setattr(dispatch.replica.database, "run", slow)
    client = await dispatch.connect()
    await began.wait()
    await client.dispatcher.close()
    may_go_on.set()
    await client.over()
    await wait_until(lambda: leases(factory) == 0)
    assert not client.jobs
    assert attempts(factory) == [("released", 1), ("released", 2)]


async def test_prepared_jobs_are_released_after_late_cancellation(
    dispatch: DispatchHarness, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tried_once(dispatch, factory)
    began, is_told = asyncio.Event(), asyncio.Event()
    run = dispatch.replica.database.run

    async def slow(statement: Statement[Any]) -> Any:
        if statement.name == STEPS:
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                # As the driver does, which waits until the server has heard of it.
                await is_told.wait()
                raise
        return await run(statement)

    monkeypatch.setattr(dispatch.replica.database, "run", slow)
    client = await dispatch.connect()
    await began.wait()
    client.stop_reading()
    await client.dispatcher.close()
    assert leases(factory) == 1
    is_told.set()
    await wait_until(lambda: leases(factory) == 0)
    assert attempts(factory) == [("released", 1), ("released", 2)]


async def test_sent_jobs_stay_with_worker_at_stream_end(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.submit("t")
    client = await dispatch.connect()
    await client.got(1)
    await client.disconnect()
    assert leases(factory) == 1
    (answer,) = await client.end()
    assert answer.answer == "accepted"


async def test_reconnected_worker_keeps_held_jobs_and_releases_others(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(3):
        factory.submit("t")
    client = await dispatch.connect(handshake(max_in_flight=3))
    kept, *lost = await client.got(3)
    await client.disconnect()
    holds = frozenset({(kept.claim.job_id, kept.claim.attempt)})
    again = await dispatch.connect(replace(client.handshake, holds=holds))
    await again.got(2)
    assert again.dispatcher.room.in_use == 3
    assert {job.claim.job_id for job in again.jobs} == {job.claim.job_id for job in lost}
    assert {(job.claim.attempt, job.retries) for job in again.jobs} == {(2, 0)}
    again.jobs.append(kept)
    await again.end()
    assert again.dispatcher.room.in_use == 0


async def test_new_stream_knows_jobs_of_last_claim_of_older_stream(
    dsn: str, dispatch: DispatchHarness, factory: JobFactory
) -> None:
    older = await dispatch.connect()
    await older.disconnect()
    stream_id = older.dispatcher.stream_id
    job_id = factory.submit("t")
    row = factory.conn.execute("select version from laneway.control").fetchone()
    assert row is not None
    (version,) = row
    ranges = [Range("t", 1, True, MIN_RANK, 0, MAX_RANK)]
    with psycopg.connect(dsn) as conn:
        run_sync(conn, claim(older.id, "default", version, 1, ranges, [1], stream_id=stream_id))
        again = replace(older.handshake, max_in_flight=1, holds=frozenset({(job_id, 1)}))
        connecting = asyncio.ensure_future(dispatch.connect(again))
        waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = %s"
        await wait_until(lambda: factory.conn.execute(waits, [factory.conn.info.dbname]).fetchone())
    assert (await connecting).dispatcher.room.in_use == 1


async def test_newer_stream_of_a_worker_ends_the_older_one(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    first = await dispatch.connect()
    second = await dispatch.connect(first.handshake)
    await first.over()
    assert first.dispatcher.end == "replaced"
    factory.submit("t")
    dispatch.replica.poller.wake()
    await second.got(1)
    stopped = factory.conn.execute(
        "select stopped_at from laneway.workers where id = %s", [first.id]
    ).fetchone()
    assert stopped == (None,)


async def test_steps_of_earlier_attempts_come_along_and_cost_first_attempts_nothing(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.submit("t")
    client = await dispatch.connect()
    (job,) = await client.got(1)
    assert job.steps == ()
    factory.conn.execute(
        "insert into laneway.steps (seq, name, attempt, result, took_s)"
        " values (%s, 'charge', 1, '{\"paid\": 3}', 0.5)",
        [job.claim.seq],
    )
    await client.end("release")
    (again,) = await client.got(1)
    assert again.claim.attempt == 2
    assert [tuple(step) for step in again.steps] == [("charge", '{"paid": 3}', 0.5)]


async def test_few_bytes_of_steps_are_read_at_once_and_all_of_them_come(
    dispatch: DispatchHarness, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.rpc.server.dispatcher.MAX_BYTES", 5000)
    read: list[int] = []
    run = dispatch.replica.database.run

    async def noting(statement: Statement[Any]) -> Any:
        answer = await run(statement)
        if statement.name == "remote/read_steps":
            read.append(sum(len(s.result) for one in answer.values() for s in one.steps))
        return answer

    monkeypatch.setattr(dispatch.replica.database, "run", noting)
    for _ in range(6):
        factory.submit("t")
    client = await dispatch.connect()
    sizes = dict(zip((job.id for job in await client.got(6)), (2, 2, 2, 9, 0, 2), strict=True))
    for job in client.jobs:
        factory.conn.execute(
            "insert into laneway.steps (seq, name, attempt, result)"
            " select %s, n::text, 1, to_jsonb(repeat('x', 998)) from generate_series(1, %s) n",
            [job.claim.seq, sizes[job.id]],
        )
    before = [job.id for job in client.jobs]
    await client.end("release")
    await client.got(6)
    assert {job.id: len(job.steps) for job in client.jobs} == sizes
    assert [job.id for job in client.jobs] == before
    assert sorted(read)[-1] == 9000
    assert all(size <= 5000 for size in read if size != 9000)


async def test_steps_larger_than_a_message_end_their_job_and_no_other(
    dsn: str, factory: JobFactory, settings: Settings
) -> None:
    small = settings.model_copy(update={"grpc_assignment_bytes": 100_000})
    async with DispatchHarness(dsn, small) as dispatch:
        for _ in range(2):
            factory.submit("t")
        client = await dispatch.connect()
        large, fine = await client.got(2)
        factory.conn.execute(
            "insert into laneway.steps (seq, name, attempt, result)"
            " select s, n::text, 1, to_jsonb(repeat('x', 50000))"
            " from unnest(%s::bigint[]) s, generate_series(1, 3) n where s = %s or n = 1",
            [[large.claim.seq, fine.claim.seq], large.claim.seq],
        )
        await client.end("release")
        (again,) = await client.got(1)
        assert (again.id, len(again.steps)) == (fine.id, 1)
        query = "select error ->> 'type', error ->> 'message' from laneway.outcome"
        kind, message = await wait_until(lambda: factory.conn.execute(query).fetchone())
        assert kind == "AssignmentTooLarge"
        assert "150," in message


async def test_large_payloads_are_sent_in_several_messages(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    client = await dispatch.connect_without_reading()
    for _ in range(4):
        factory.submit("t", payload='"' + "x" * 600_000 + '"')
    dispatch.replica.poller.wake()
    await wait_until(lambda: leases(factory) == 4)
    client.read()
    await client.got(4)
    assert client.messages == 4


async def test_assignment_larger_than_a_message_ends_as_failed_with_its_size(
    dsn: str, factory: JobFactory, settings: Settings
) -> None:
    small = settings.model_copy(update={"grpc_assignment_bytes": 100_000})
    async with DispatchHarness(dsn, small) as dispatch:
        client = await dispatch.connect()
        factory.submit("t", payload='"' + "x" * 200_000 + '"')
        dispatch.replica.poller.wake()
        query = "select status, error ->> 'type', error ->> 'message' from laneway.outcome"
        status, kind, message = await wait_until(lambda: factory.conn.execute(query).fetchone())
        assert (status, kind) == ("failed", "AssignmentTooLarge")
        assert "200," in message
        assert "98,976" in message
        assert not client.jobs
        await wait_until(lambda: client.dispatcher.room.in_use == 0)


async def test_cancelled_job_makes_its_worker_beat(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.submit("t")
    client = await dispatch.connect()
    await client.got(1)
    notify(factory, f"cancel {client.id}")
    await wait_until(lambda: client.beats)


async def test_claim_that_fails_keeps_the_stream(
    dispatch: DispatchHarness,
    factory: JobFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("laneway.rpc.server.round_robin.RETRY_S", 0.01)
    portions: list[int] = []
    shrink = ClaimSize.shrink

    def noted(portion: ClaimSize) -> None:
        shrink(portion)
        portions.append(portion.most)

    monkeypatch.setattr(ClaimSize, "shrink", noted)
    client = await dispatch.connect()
    factory.conn.execute("alter table laneway.ready rename to hidden")
    dispatch.replica.round_robin.wake(["t"])
    await wait_until(lambda: "dispatcher: " in caplog.text)
    # Perhaps it was too much at once: it is tried with less.
    await wait_until(lambda: portions and portions[-1] < FIRST)
    factory.conn.execute("alter table laneway.hidden rename to ready")
    factory.submit("t")
    await client.got(1)
    assert client.dispatcher.end is None


async def test_drained_stream_is_sent_nothing_until_it_is_resumed(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    client = await dispatch.connect()
    client.dispatcher.drain(True)
    factory.submit("t")
    await dispatch.replica.poller.run_once()
    assert not client.jobs
    assert not leases(factory)
    client.dispatcher.drain(False)
    await client.got(1)


async def test_few_bytes_of_a_backlog_of_large_jobs_are_held_at_once(
    dispatch: DispatchHarness, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tenth of everything, as it costs a test a tenth.
    monkeypatch.setattr("laneway.rpc.server.assignment_queue.MAX_BYTES", 400_000)
    monkeypatch.setattr("laneway.rpc.server.claim_size.CLAIM_BYTES", 400_000)
    unsent: list[int] = []
    put = AssignmentQueue.put

    def noted(outbox: AssignmentQueue, parcels: Iterable[QueuedAssignment]) -> None:
        put(outbox, parcels)
        unsent.append(len(outbox))

    monkeypatch.setattr(AssignmentQueue, "put", noted)
    factory.conn.execute(
        "select laneway.submit('t', to_jsonb(repeat('x', 100000))) from generate_series(1, 300)"
    )
    client = await dispatch.connect_without_reading(handshake(max_in_flight=1000))
    await wait_until(lambda: not client.dispatcher.takes_jobs)
    await wait_until(lambda: dispatch.replica.round_robin.is_idle)
    # The first claim cannot know how large they are.
    assert leases(factory) == FIRST
    # Only that its reader has taken some tells that there is room again.
    await dispatch.replica.poller.cancel()
    client.read()
    await client.got(300)
    assert len({one.id for one in client.jobs}) == 300
    # From then on a claim brings what fits, and only once no more than that is unsent.
    assert unsent[0] == FIRST
    assert max(unsent[1:]) <= 4 + 3


async def test_small_jobs_are_claimed_in_ever_larger_portions(
    dispatch: DispatchHarness, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[int] = []
    learn = ClaimSize.learn

    def noted(portion: ClaimSize, assignments: Sequence[Assignment]) -> None:
        learn(portion, assignments)
        brought.append(len(assignments))

    monkeypatch.setattr(ClaimSize, "learn", noted)
    factory.conn.execute("select laneway.submit('t', 'null') from generate_series(1, 1000)")
    client = await dispatch.connect(handshake(max_in_flight=2000))
    await client.got(1000)
    assert max(brought) >= 500
    assert len([count for count in brought if count]) <= 8


@pytest.mark.parametrize("is_being_sent", [False, True])
async def test_unread_stream_gets_no_more_jobs_and_loses_old_ones(
    dispatch: DispatchHarness,
    factory: JobFactory,
    monkeypatch: pytest.MonkeyPatch,
    is_being_sent: bool,
) -> None:
    monkeypatch.setattr("laneway.rpc.server.assignment_queue.STUCK_S", 0.0)
    factory.submit("t")
    client = await dispatch.connect_without_reading()
    if is_being_sent:
        await anext(client.dispatcher.batches())
    await wait_until(lambda: not client.dispatcher.takes_jobs)
    assert leases(factory) == 1
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600)
    monkeypatch.setattr("laneway.rpc.server.assignment_queue.time", later)
    monkeypatch.setattr("laneway.rpc.server.dispatcher.time", later)
    client.dispatcher.release_stale()
    await wait_until(lambda: attempts(factory) == [("released", 1)])
    assert not leases(factory)
