"""Jobs sent ahead of a worker's room: the server's side, and the worker's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from laneway import Context, Laneway
from laneway.config.settings import Settings
from laneway.engine.claim import claim_ahead
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server import stream_capacity
from laneway.rpc.worker.worker import RemoteWorker
from tests.rpc.dispatch_harness import DispatchHarness, StreamClient, handshake
from tests.rpc.scripted_server import ScriptedServer, assignment
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import QUICK, wait_until

LONG_S = 3600.0

# -- the server -----------------------------------------------------------------------------------


@pytest.fixture
async def dispatch(
    dsn: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DispatchHarness]:
    monkeypatch.setattr(stream_capacity, "AHEAD_S", LONG_S)
    monkeypatch.setattr(stream_capacity, "REFUSED_S", LONG_S)
    async with DispatchHarness(dsn, settings) as dispatch:
        yield dispatch


def leases(factory: JobFactory) -> int:
    row = factory.conn.execute("select count(*) from laneway.lease").fetchone()
    assert row is not None
    return int(row[0])


async def connect(dispatch: DispatchHarness, *, ahead: int, **fields: Any) -> StreamClient:
    """A worker with room for 4 jobs that takes more of the lane `default` ahead."""
    client = await dispatch.connect_without_reading(handshake(max_in_flight=4, **fields))
    client.dispatcher.room.allow_ahead({"default": ahead})
    client.read()
    return client


async def test_worker_gets_as_many_jobs_ahead_as_it_allows(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    ids = [factory.submit("t") for _ in range(30)]
    client = await connect(dispatch, ahead=10)
    order: list[UUID] = []
    while len(order) < 30:
        await client.got(min(14, 30 - len(order)))
        assert len(client.jobs) <= 14
        assert leases(factory) <= 14
        assert all(one.is_ahead for one in client.jobs)
        order += [one.claim.job_id for one in client.jobs[:7]]
        answers = await client.end(count=7)
        assert {one.answer for one in answers} == {"accepted"}
    assert order == ids, "in the order of the lane"
    assert not leases(factory)


async def test_nothing_is_sent_ahead_once_the_worker_stops_allowing_it(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(30):
        factory.submit("t")
    client = await connect(dispatch, ahead=10)
    await client.got(14)
    client.dispatcher.room.allow_ahead({})
    assert {one.answer for one in await client.end("release", 10)} == {"accepted"}
    assert {one.answer for one in await client.end()} == {"accepted"}
    await client.got(4)
    dispatch.replica.poller.wake()
    await wait_until(lambda: dispatch.replica.round_robin.is_idle)
    assert len(client.jobs) == leases(factory) == 4
    assert not any(one.is_ahead for one in client.jobs)


async def test_bounded_lane_sends_nothing_ahead_and_keeps_its_slots(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.conn.execute("update laneway.worker_lanes set max_slots = 3 where name = 'default'")
    for _ in range(12):
        factory.submit("t")
    client = await connect(dispatch, ahead=10)
    ended = 0
    while ended < 12:
        await client.got(3)
        assert len(client.jobs) <= 3
        assert leases(factory) <= 3
        assert not any(one.is_ahead for one in client.jobs)
        ended += len(await client.end())


async def test_jobs_with_a_key_are_not_sent_ahead(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for n in range(12):
        factory.submit("t", concurrency_key=str(n))
    client = await connect(dispatch, ahead=10)
    ended = 0
    while ended < 12:
        await client.got(4)
        assert len(client.jobs) <= 4
        assert not any(one.is_ahead for one in client.jobs)
        ended += len(await client.end())


async def test_jobs_ahead_of_one_lane_leave_a_place_to_another(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.conn.execute(
        "insert into laneway.worker_lanes (name, job_types, max_slots) values ('b', '{b}', null)"
    )
    for _ in range(30):
        factory.submit("t")
    given = handshake("t", "b", max_in_flight=4)
    client = await dispatch.connect_without_reading(given)
    client.dispatcher.room.allow_ahead({"default": 10})
    client.read()
    await client.got(14)
    factory.submit("b")
    dispatch.replica.poller.wake()
    await client.got(15)
    assert (client.jobs[14].job_type, client.jobs[14].is_ahead) == ("b", False)


async def test_reconnected_worker_gets_no_more_until_its_jobs_ahead_end(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(20):
        factory.submit("t")
    client = await connect(dispatch, ahead=10)
    held = list(await client.got(14))
    pairs = frozenset((one.claim.job_id, one.claim.attempt) for one in held)
    again = await dispatch.connect(handshake(worker_id=client.id, max_in_flight=4, holds=pairs))
    await wait_until(lambda: dispatch.replica.round_robin.is_idle)
    assert again.dispatcher.room.in_use == 14
    assert not again.jobs
    again.jobs += held
    assert {one.answer for one in await again.end(count=11)} == {"accepted"}
    await wait_until(lambda: again.dispatcher.room.in_use == 4)
    assert leases(factory) == 4


async def test_job_that_was_lost_with_others_is_not_sent_ahead(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(12):
        factory.submit("t")
    factory.conn.execute(
        "insert into laneway.suspects (seq, losses, lost_with)"
        " select seq, 1, gen_random_uuid() from laneway.jobs"
    )
    # A job in its first attempt has no losses.
    factory.conn.execute("update laneway.ready set attempt = 1")
    client = await connect(dispatch, ahead=10)
    ended = 0
    while ended < 12:
        await client.got(4)
        assert len(client.jobs) <= 4
        assert not any(one.is_ahead for one in client.jobs)
        ended += len(await client.end())


async def test_dead_worker_charges_none_of_its_jobs_and_takes_no_suspects_ahead(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    for _ in range(14):
        factory.submit("t")
    client = await connect(dispatch, ahead=10)
    await client.got(14)
    await client.disconnect()
    assert leases(factory) == 14, "what was sent stays the worker's"
    factory.conn.execute("update laneway.lease set lease_until = now() - interval '1 s'")
    await wait_until(lambda: not leases(factory))
    row = factory.conn.execute(
        "select (select count(*) from laneway.suspects), max(retries) from laneway.jobs_view"
    ).fetchone()
    assert row == (14, 0)
    again = await connect(dispatch, ahead=10)
    ended = 0
    while ended < 14:
        await wait_until(lambda: again.jobs)
        assert leases(factory) <= 4
        assert not any(one.is_ahead for one in again.jobs)
        ended += len(await again.end())


# -- the worker -----------------------------------------------------------------------------------


class QuickApp:
    """A worker with a job type whose handlers wait until they may end, and one that never waits."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.lw = Laneway(embedded=False, **QUICK)
        self.begun: list[int] = []
        self.may_end = asyncio.Event()
        self.workers: list[RemoteWorker] = []

        @self.lw.handler("gated")
        async def gated(ctx: Context, n: int) -> None:
            self.begun.append(n)
            await self.may_end.wait()

        @self.lw.handler("quick")
        async def quick(ctx: Context) -> None: ...

    async def start(self, **settings: Any) -> RemoteWorker:
        given = Settings.load(embedded=False, **{**QUICK, **settings})
        worker = RemoteWorker(self.lw.handlers, given, self.server.link)
        self.workers.append(worker)
        await worker.start()
        return worker

    def send(self, *numbers: int, **fields: Any) -> list[pb.Assignment]:
        ones = [assignment("gated", {"n": n}, **fields) for n in numbers]
        self.server.send(*ones)
        return ones

    async def outcome(self, one: pb.Assignment) -> str | None:
        await wait_until(lambda: one.job_id in self.server.results)
        found: str | None = self.server.results[one.job_id].WhichOneof("outcome")
        return found


@pytest.fixture
async def app(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[QuickApp]:
    for name in ("LANEWAY_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    # The default lets a busy machine give jobs back.
    monkeypatch.setattr(claim_ahead, "KEEP_S", LONG_S)
    async with ScriptedServer() as server:
        app = QuickApp(server)
        yield app
        for worker in app.workers:
            await worker.stop(0.0)


async def test_jobs_sent_ahead_start_in_order_as_there_is_room(app: QuickApp) -> None:
    await app.start(concurrency=2)
    running = app.send(1, 2)
    waiting = app.send(3, 4, 5, is_ahead=True)
    await wait_until(lambda: app.begun == [1, 2])
    beats = len(app.server.of(pb.HeartbeatRequest))
    app.server.send(beat=True)
    await wait_until(lambda: len(app.server.of(pb.HeartbeatRequest)) > beats)
    renewed = app.server.of(pb.HeartbeatRequest)[-1].claims
    ids = {one.job_id for one in (*running, *waiting)}
    assert {one.job_id for one in renewed} == ids, "their leases are renewed like all others"
    assert app.begun == [1, 2]
    app.may_end.set()
    assert [await app.outcome(one) for one in (*running, *waiting)] == ["finish"] * 5
    assert app.begun == [1, 2, 3, 4, 5]


async def test_jobs_sent_ahead_go_back_if_they_would_wait_for_long(
    app: QuickApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_ahead, "KEEP_S", 0.01)
    await app.start(concurrency=2)
    running = app.send(1, 2)
    await wait_until(lambda: app.begun == [1, 2])
    waiting = app.send(3, 4, is_ahead=True)
    assert [await app.outcome(one) for one in waiting] == ["release"] * 2
    app.may_end.set()
    assert [await app.outcome(one) for one in running] == ["finish"] * 2
    assert app.begun == [1, 2]


async def test_stopping_worker_returns_jobs_sent_ahead_at_once(app: QuickApp) -> None:
    worker = await app.start(concurrency=1)
    (running,) = app.send(1)
    waiting = app.send(2, 3, is_ahead=True)
    await wait_until(lambda: app.begun == [1])
    stopping = asyncio.ensure_future(worker.stop(LONG_S))
    assert [await app.outcome(one) for one in waiting] == ["release"] * 2
    assert app.server.results[waiting[0].job_id].ran_ms == 0, "uncharged: it did not begin"
    app.may_end.set()
    await stopping
    assert await app.outcome(running) == "finish"
    assert app.begun == [1]


@pytest.mark.parametrize("answer", [pb.ANSWER_CANCEL_REQUESTED, pb.ANSWER_FENCED])
async def test_job_that_ends_while_it_waits_is_never_called(
    app: QuickApp, answer: pb.Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, stopped = claim_ahead.ClaimAhead.stop, asyncio.Event()

    def stop_and_note(*args: Any) -> None:
        stop(*args)
        stopped.set()

    monkeypatch.setattr(claim_ahead.ClaimAhead, "stop", stop_and_note)
    await app.start(concurrency=1)
    (running,) = app.send(1)
    gone, stays = app.send(2, 3, is_ahead=True)
    await wait_until(lambda: app.begun == [1])
    server = app.server
    server.answer = lambda claim: answer if claim.job_id == gone.job_id else pb.ANSWER_ACCEPTED
    server.send(beat=True)
    await asyncio.wait_for(stopped.wait(), 60)
    app.may_end.set()
    assert [await app.outcome(one) for one in (running, stays)] == ["finish"] * 2
    assert app.begun == [1, 3]
    if answer == pb.ANSWER_CANCEL_REQUESTED:
        assert await app.outcome(gone) == "cancel"
    else:
        assert gone.job_id not in server.results


async def test_stopping_worker_allows_no_jobs_ahead(
    app: QuickApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_ahead, "ENOUGH", 1)
    worker = await app.start()
    (running,) = app.send(1)
    await wait_until(lambda: app.begun == [1])
    for _ in range(3):
        app.server.send(assignment("quick"))
        found = len(app.server.results)
        await wait_until(lambda: len(app.server.results) > found)  # noqa: B023
    assert app.server.of(pb.ReportResultRequest)[-1].ahead
    stopping = asyncio.ensure_future(worker.stop(LONG_S))
    app.may_end.set()
    await stopping
    assert await app.outcome(running) == "finish"
    calls = app.server.of(pb.ReportResultRequest)
    last = next(x for x in calls if running.job_id in {y.claim.job_id for y in x.results})
    assert not last.ahead, "its server would send what it has to return"


async def test_reconnecting_worker_names_the_jobs_that_wait(app: QuickApp) -> None:
    await app.start(concurrency=1)
    sent = [*app.send(1), *app.send(2, 3, is_ahead=True)]
    await wait_until(lambda: app.begun == [1])
    app.server.end_stream()
    await wait_until(lambda: len(app.server.handshakes) == 2)
    held = {one.job_id for one in app.server.handshakes[1].holds}
    assert held == {one.job_id for one in sent}


@pytest.mark.parametrize("settings", [{}, {"concurrency": 100}, {"slots": 100}])
async def test_worker_allows_jobs_ahead_while_handlers_end_at_once(
    app: QuickApp, settings: dict[str, int]
) -> None:
    await app.start(**settings)

    def allowed() -> bool:
        return any(one.ahead["default"] for one in app.server.of(pb.ReportResultRequest))

    sent = 0
    while sent < 2000 and not allowed():
        app.server.send(*(assignment("quick") for _ in range(100)))
        sent += 100
        await wait_until(lambda: len(app.server.results) == sent)  # noqa: B023
    assert allowed() is not bool(settings), "a set bound holds for all of its jobs"
    most = [max(one.ahead.values(), default=0) for one in app.server.of(pb.ReportResultRequest)]
    assert max(most) <= claim_ahead.MOST_SENT
