"""The shared work of a replica costs the same for one worker and for a hundred."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from laneway.config.settings import Settings
from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.errors import Forbidden
from laneway.rpc.server.handshake import ServedType
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store.database import Database
from laneway.store.leases import Verdict
from laneway.store.statement import Statement
from tests.rpc.dispatch_harness import (
    ANN,
    DispatchHarness,
    StreamClient,
    declared,
    handshake,
    notify,
    settle,
)
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

CLAIM = "remote/claim_jobs"


@pytest.fixture
async def dispatch(dsn: str, settings: Settings) -> AsyncIterator[DispatchHarness]:
    async with DispatchHarness(dsn, settings) as dispatch:
        yield dispatch


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count each statement since the last clear."""
    counts: Counter[str] = Counter()
    run = Database.run

    async def counting(self: Database, statement: Statement[Any]) -> Any:
        counts[statement.name] += 1
        return await run(self, statement)

    monkeypatch.setattr(Database, "run", counting)
    return counts


async def settled_down(dispatch: DispatchHarness) -> None:
    """Wait until no claim runs and the search for the new streams is over."""
    await dispatch.replica.poller.run_once()
    await settled_rounds(dispatch)


async def settled_rounds(dispatch: DispatchHarness) -> None:
    await wait_until(lambda: dispatch.replica.round_robin.is_idle)


def _have(clients: list[StreamClient], count: int) -> bool:
    return sum(len(client.jobs) for client in clients) == count


# One at a time ----------------------------------------------------------------------------------


async def test_submit_wakes_one_of_many_idle_workers_and_costs_one_claim(
    dispatch: DispatchHarness, factory: JobFactory, statements: Counter[str]
) -> None:
    clients = [await dispatch.connect() for _ in range(20)]
    await settled_down(dispatch)
    # Polling would find the notified jobs as well.
    await dispatch.replica.poller.cancel()
    statements.clear()
    for n in range(1, 6):
        factory.submit("t")
        notify(factory, "wake t")
        await wait_until(partial(_have, clients, n))
        await wait_until(lambda: dispatch.replica.round_robin.is_idle)
    assert statements[CLAIM] == 5
    # In turn: no worker gets a second job while another has none.
    assert max(len(client.jobs) for client in clients) == 1


async def test_hundred_idle_workers_cost_no_more_statements_than_one(
    dispatch: DispatchHarness, statements: Counter[str]
) -> None:
    for _ in range(100):
        await dispatch.connect()
    await settled_down(dispatch)
    statements.clear()
    replica = dispatch.replica
    await replica.poller.cancel()
    await replica.presence.cancel()
    await replica.leader_services.cancel()
    # Ten seconds of an idle replica: the shortest poll interval of a lane here is one second.
    replica.presence.touch_now()
    for second in range(10):
        await replica.poller.run_once()
        await replica.presence.run_once()
        await replica.leader_services.retention.run_once()
        if second % 2:
            await replica.leader_services.watchdog.run_once()
    assert statements.total() <= 30, statements
    assert statements[CLAIM] == 0


async def test_backlog_is_shared_by_all_workers_with_room(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    clients = [await dispatch.connect() for _ in range(4)]
    await settled_down(dispatch)
    for _ in range(12):
        factory.submit("t")
    notify(factory, "wake t")
    await wait_until(lambda: sum(len(client.jobs) for client in clients) == 12)
    assert sum(1 for client in clients if client.jobs) >= 3


async def test_work_of_two_types_in_one_lane_reaches_the_workers_of_each(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    one, other = await dispatch.connect(handshake("a")), await dispatch.connect(handshake("b"))
    await settled_down(dispatch)
    factory.submit("a")
    factory.submit("b")
    notify(factory, "wake a\x1fb")
    await one.got(1)
    await other.got(1)


async def test_work_without_room_is_claimed_when_room_is_free(
    dispatch: DispatchHarness, factory: JobFactory, statements: Counter[str]
) -> None:
    clients = [await dispatch.connect(handshake(max_in_flight=1)) for _ in range(3)]
    for _ in range(4):
        factory.submit("t")
    notify(factory, "wake t")
    for client in clients:
        await client.got(1)
    await wait_until(lambda: dispatch.replica.round_robin.is_idle)
    statements.clear()
    dispatch.replica.round_robin.wake(["t"])
    assert statements[CLAIM] == 0
    await clients[1].end()
    await clients[1].got(1)


async def test_kind_of_room_that_was_used_up_is_claimed_for_when_it_is_free(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    client = await dispatch.connect(
        handshake(ServedType("t", "thread", False, None), max_threads=1)
    )
    await settled_down(dispatch)
    # Only notified streams claim.
    await dispatch.replica.poller.cancel()
    for _ in range(3):
        factory.submit("t")
    notify(factory, "wake t")
    for _ in range(3):
        (_,) = await client.got(1)
        await client.end()


async def test_highest_priority_goes_first_for_any_worker(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    client = await dispatch.connect(handshake(max_in_flight=1))
    await settled_down(dispatch)
    wanted = [factory.submit("t", priority=one) for one in (1, 5, 3)]
    notify(factory, "wake t")
    seen = []
    for _ in range(3):
        (job,) = await client.got(1)
        seen.append(job.claim.job_id)
        await client.end()
    assert seen == [wanted[1], wanted[2], wanted[0]]


async def test_room_that_comes_back_in_small_parts_is_claimed_for_in_large_ones(
    dispatch: DispatchHarness,
    factory: JobFactory,
    statements: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("laneway.rpc.server.round_robin.COLLECT_S", 60.0)
    for _ in range(600):
        factory.submit("t")
    client = await dispatch.connect(handshake(max_in_flight=200))
    await client.got(200)
    statements.clear()
    for _ in range(40):
        await client.end(count=5)
    await wait_until(lambda: len(client.jobs) >= 100)
    assert statements[CLAIM] <= 4


# Lanes --------------------------------------------------------------------------------------------


async def test_changed_lane_is_read_once_for_all_streams(
    dispatch: DispatchHarness, factory: JobFactory, statements: Counter[str]
) -> None:
    clients = [await dispatch.connect() for _ in range(10)]
    await settled_down(dispatch)
    statements.clear()
    factory.conn.execute("update laneway.worker_lanes set enabled = false where name = 'default'")
    factory.submit("t")
    await settled_down(dispatch)
    assert statements["lanes/read_lanes"] == 1
    assert not any(client.jobs for client in clients)
    factory.conn.execute("update laneway.worker_lanes set enabled = true where name = 'default'")
    await settled_down(dispatch)
    await wait_until(lambda: sum(len(client.jobs) for client in clients) == 1)


async def test_full_lane_is_claimed_in_again_when_one_of_ours_ends(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.conn.execute("update laneway.worker_lanes set max_slots = 1 where name = 'default'")
    clients = [await dispatch.connect() for _ in range(2)]
    for _ in range(3):
        factory.submit("t")
    await settled_down(dispatch)
    for _ in range(3):
        await wait_until(lambda: sum(len(client.jobs) for client in clients) == 1)
        await next(client for client in clients if client.jobs).end()


@pytest.mark.parametrize("by", ["limit", "key"])
async def test_limit_and_a_key_let_one_job_at_a_time_through(
    dispatch: DispatchHarness, factory: JobFactory, by: str
) -> None:
    factory.conn.execute("insert into laneway.limits (name, max_concurrent) values ('scarce', 1)")
    served = declared("t", limits=("scarce",) if by == "limit" else ())
    clients = [await dispatch.connect(handshake(served)) for _ in range(2)]
    for _ in range(3):
        factory.submit("t", concurrency_key="k" if by == "key" else None)
    await settled_down(dispatch)
    # Only notified streams claim.
    await dispatch.replica.poller.cancel()
    for _ in range(3):
        await wait_until(lambda: any(client.jobs for client in clients))
        await settled_rounds(dispatch)
        assert _have(clients, 1)
        await next(client for client in clients if client.jobs).end()


async def test_pause_gate_stops_every_stream(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    client = await dispatch.connect()
    factory.conn.execute("update laneway.control set paused = true, paused_by = 'me'")
    factory.submit("t")
    await settled_down(dispatch)
    assert not client.jobs
    factory.conn.execute("update laneway.control set paused = false")
    await settled_down(dispatch)
    await client.got(1)


async def test_type_that_moves_to_a_lane_beyond_the_token_is_not_sent_any_more(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    client = await dispatch.connect(caller=replace(ANN, lanes=frozenset({"default"})))
    await settled_down(dispatch)
    factory.conn.execute("insert into laneway.worker_lanes (name, job_types) values ('far', '{t}')")
    factory.submit("t")
    await settled_down(dispatch)
    assert not client.jobs
    assert client.dispatcher.lanes == set()
    client.dispatcher.update_caller(replace(ANN, lanes=frozenset({"far"})))
    await client.got(1)


async def test_analyses_go_to_workers_of_lane_of_their_type(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(), has_analysis=True)
    job_id = factory.submit("costly")
    client = await dispatch.connect(
        handshake(ServedType("costly", "async", True, None)),
        replace(ANN, lanes=frozenset({"default"})),
    )
    (job,) = await client.got(1)
    assert (job.claim.job_id, job.job_type, job.is_analysis) == (job_id, "costly", True)
    found = dispatch.replica.assignments.find(job.id, job.claim.attempt)
    assert found is not None
    assert (found.lane, found.job_type) == ("default", analysis_of("costly"))
    plan = '{"plan": null, "cost": null, "warnings": []}'
    assert Analysis().to_dict() == {"plan": None, "cost": None, "warnings": []}
    (answer,) = await dispatch.replica.settle([Verdict(job.claim, "analyzed", plan)], 20.0)
    assert answer.status == "awaiting_approval"


# Results ------------------------------------------------------------------------------------------


async def test_results_of_calls_that_come_together_are_settled_together(
    dispatch: DispatchHarness, factory: JobFactory, statements: Counter[str]
) -> None:
    for _ in range(60):
        factory.submit("t")
    client = await dispatch.connect(handshake(max_in_flight=60))
    claims = [job.claim for job in await client.got(60)]
    statements.clear()
    answers = await asyncio.gather(*(settle(dispatch.replica, [claim]) for claim in claims))
    assert {one.answer for each in answers for one in each} == {"accepted"}
    assert statements["leases/settle_jobs"] <= 3


async def test_concurrent_equal_results_agree_and_another_is_fenced(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.submit("t")
    client = await dispatch.connect()
    (job,) = await client.got(1)
    first, again, other = await asyncio.gather(
        settle(dispatch.replica, [job.claim]),
        settle(dispatch.replica, [job.claim]),
        settle(dispatch.replica, [job.claim], "snooze"),
    )
    assert [one.answer for one in first + again] == ["accepted", "accepted"]
    assert [one.answer for one in other] == ["fenced"]
    assert client.dispatcher.room.in_use == 0


async def test_finish_is_not_accepted_once_the_replica_has_released_its_job(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.submit("t")
    client = await dispatch.connect(handshake(max_in_flight=1))
    (job,) = await client.got(1)
    dispatch.replica.completer.add(Verdict(job.claim, "release"))
    answers = [(await settle(dispatch.replica, [job.claim]))[0].answer for _ in range(2)]
    assert answers in (["busy", "fenced"], ["fenced", "fenced"])
    assert factory.conn.execute("select count(*) from laneway.outcome").fetchone() == (0,)


# Who is there -------------------------------------------------------------------------------------


async def test_worker_id_belongs_to_the_principal_that_registered_it(
    dispatch: DispatchHarness,
) -> None:
    client = await dispatch.connect()
    with pytest.raises(Forbidden, match="another principal"):
        await dispatch.connect(client.handshake, StreamCaller(uuid4(), "bob"))
    assert client.dispatcher.end is None
    # A caller cannot take the id of a worker with a database either.
    with pytest.raises(Forbidden):
        await dispatch.connect(handshake(worker_id=dispatch.replica.id))


async def test_token_that_reaches_none_of_the_types_is_refused(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    message = "covers lane far, but none of the worker's job types: t$"
    with pytest.raises(Forbidden, match=message):
        await dispatch.connect(caller=replace(ANN, lanes=frozenset({"far"})))
    await wait_until(
        lambda: factory.conn.execute(
            "select 1 from laneway.workers where stopped_at is not null"
        ).fetchone()
    )


async def test_worker_publishes_its_types_and_their_lanes_only_within_its_reach(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    near = replace(ANN, lanes=frozenset({"default", "near"}))
    shaken = handshake(declared("a", lane="near"), declared("b", lane="far"), declared("c"))
    await dispatch.connect(shaken, near)
    rows = factory.conn.execute(
        "select name, job_types from laneway.worker_lanes where name in ('near', 'far')"
    ).fetchall()
    assert rows == [("near", ["a"])]
    published = "select name from laneway.job_types where published_at is not null order by 1"
    assert factory.conn.execute(published).fetchall() == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize("declared_s, timeout_ms", [(None, 0), (3.0, 3000), ("nothing", 10_000)])
async def test_timeout_is_declared_one_or_stored_one(
    dispatch: DispatchHarness, factory: JobFactory, declared_s: Any, timeout_ms: int
) -> None:
    factory.publish("t")
    factory.conn.execute("update laneway.job_types set timeout_s = 10 where name = 't'")
    served = "t" if declared_s == "nothing" else declared("t", timeout_s=declared_s)
    factory.submit("t")
    client = await dispatch.connect(handshake(served))
    (job,) = await client.got(1)
    assert job.timeout_ms == timeout_ms


async def test_types_that_a_token_does_not_cover_are_named(
    dispatch: DispatchHarness, caplog: pytest.LogCaptureFixture
) -> None:
    near = replace(ANN, lanes=frozenset({"near"}))
    client = await dispatch.connect(
        handshake(declared("a", lane="near"), declared("b", lane="far")), near
    )
    assert client.dispatcher.uncovered == ["b"]
    message = "does not cover b in lane default (declared for far): it gets none of these jobs"
    assert [message in one.getMessage() for one in caplog.records].count(True) == 1


async def test_worker_cannot_bring_a_type_of_others_into_a_lane_of_its_own(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.publish("theirs")
    factory.submit("theirs")
    thief = replace(ANN, lanes=frozenset({"interactive"}), declares=frozenset({"interactive"}))
    shaken = handshake(declared("theirs", lane="interactive"))
    with pytest.raises(Forbidden):
        await dispatch.connect(shaken, thief)
    moved = "select count(*) from laneway.worker_lanes where 'theirs' = any (job_types)"
    assert factory.conn.execute(moved).fetchone() == (0,)
    named = replace(thief, job_types=frozenset({"theirs"}))
    with pytest.raises(Forbidden):
        await dispatch.connect(shaken, named)
    assert factory.conn.execute(moved).fetchone() == (0,)


async def test_worker_cannot_take_an_approval_away(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    factory.publish("gated", approval=Approval(two_person=True), has_analysis=True)
    await dispatch.connect(handshake(declared("gated")))
    row = factory.conn.execute(
        "select approval, two_person, has_analysis from laneway.job_types where name = 'gated'"
    ).fetchone()
    assert row == ("always", True, True)


async def test_replica_leads_without_other_leader_and_reports_it(
    dispatch: DispatchHarness, factory: JobFactory
) -> None:
    await wait_until(lambda: dispatch.replica.leader_services.watchdog.is_leader)
    row = factory.conn.execute(
        "select w.name from laneway.leader l join laneway.workers w on w.id = l.holder"
    ).fetchone()
    assert row == (dispatch.replica.name,)


async def test_stop_ends_streams_after_claimed_jobs_are_sent(
    dsn: str, settings: Settings, factory: JobFactory
) -> None:
    async with DispatchHarness(dsn, settings) as dispatch:
        client = await dispatch.connect_without_reading()
        factory.submit("t")
        notify(factory, "wake t")
        await wait_until(lambda: len(dispatch.replica.assignments) == 1)
        await dispatch.replica.stop_claiming()
        client.read()
        await client.over()
        assert client.dispatcher.end == "stopping"
        (answer,) = await client.end()
        assert answer.answer == "accepted"
    stopped = factory.conn.execute("select count(*) from laneway.workers where stopped_at is null")
    assert stopped.fetchone() == (0,)
