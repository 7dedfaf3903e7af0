"""The calls of a remote worker: each job is answered by itself, whatever becomes of the others."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any
from uuid import UUID, uuid4

import grpc
import psycopg
import pytest

from laneway.domain.approval import Analysis
from laneway.rpc import messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.messages import MAX_CLAIMS
from laneway.rpc.server import stream_capacity
from laneway.rpc.server.handshake import MAX_IN_FLIGHT
from laneway.rpc.server.ownership import Ownership
from laneway.store.database import Database
from tests.api.conftest import People
from tests.rpc.rpc_harness import (
    ACCEPTED,
    AGAIN,
    CANCEL_REQUESTED,
    FENCED,
    Calls,
    RpcHarness,
    assigned,
    sent,
)
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until


@pytest.fixture
def calls(rpc: RpcHarness, people: People) -> Calls:
    people.role("trusted", "workers:claim", "workers:declare")
    return rpc.call(people.new("ann", "trusted"))


def status(factory: JobFactory, job_id: Any) -> str:
    row = factory.conn.execute("select status from laneway.jobs_view where id = %s", [job_id])
    return str(row.fetchone()[0])  # type: ignore[index]


async def at_hand(
    calls: Calls, factory: JobFactory, count: int = 1, job_type: str = "greet"
) -> list[pb.Assignment]:
    """A connected worker with so many jobs; the stream ends with the test."""
    for n in range(count):
        factory.submit(job_type, payload=json.dumps({"n": n}))
    stream = await calls.connected([job_type])
    return await assigned(stream, count)


async def test_job_is_sent_kept_alive_reported_and_ended(calls: Calls, factory: JobFactory) -> None:
    (one,) = await at_hand(calls, factory)
    claim = sent(one)
    assert (one.job_type, json.loads(one.payload), one.attempt) == ("greet", {"n": 0}, 1)
    assert 0 < one.lease_left_ms <= one.lease_ms == 30_000
    assert await calls.beat(claim) == [ACCEPTED]
    (noted,) = await calls.report(
        pb.Update(
            claim=claim,
            stage="half",
            done=1,
            total=2,
            checkpoint='{"at": 1}',
            lines=[pb.LogLine(number=1, level="info", message="hello")],
        )
    )
    assert noted.answer == ACCEPTED
    row = factory.conn.execute(
        "select p.stage, p.done, p.checkpoint, (select count(*) from laneway.logs)"
        " from laneway.progress p"
    ).fetchone()
    assert row == ("half", 1.0, {"at": 1}, 1)
    answer = await calls.results(
        pb.Result(claim=claim, ran_ms=5, finish=pb.Finish(result='{"ok": true}'))
    )
    assert (list(answer.answers), list(answer.statuses)) == ([ACCEPTED], [])
    job = factory.conn.execute(
        "select status, result from laneway.jobs_view where id = %s", [one.job_id]
    ).fetchone()
    assert job == ("completed", {"ok": True})


async def test_repeated_result_gets_same_answer_and_another_does_not(
    calls: Calls, factory: JobFactory
) -> None:
    (one,) = await at_hand(calls, factory)
    assert await calls.finish(one) == [ACCEPTED]
    assert await calls.finish(one) == [ACCEPTED]
    assert await calls.end(pb.Result(claim=sent(one), release=pb.Release())) == [FENCED]
    assert await calls.beat(one) == [FENCED]
    (noted,) = await calls.report(pb.Update(claim=sent(one), done=1))
    assert noted.answer == FENCED


async def test_each_outcome_has_status_of_contract(calls: Calls, factory: JobFactory) -> None:
    jobs = await at_hand(calls, factory, 6)
    outcomes: list[dict[str, Any]] = [
        {"finish": pb.Finish(result="1")},
        {"fail": pb.Fail(error=pb.Error(type="E", message="no"), retry_after_ms=60_000)},
        {"fail": pb.Fail(error=pb.Error(type="E", message="no"), is_final=True)},
        {"snooze": pb.Snooze(delay_ms=60_000)},
        {"cancel": pb.Cancel(reason="enough")},
        {"finish": pb.Finish(result="{")},
    ]
    answer = await calls.results(
        *(pb.Result(claim=sent(job), **out) for job, out in zip(jobs, outcomes, strict=True))
    )
    assert list(answer.answers) == [ACCEPTED] * 6
    statuses = ["completed", "approved", "failed", "approved", "cancelled", "failed"]
    assert list(answer.statuses) == statuses
    assert [status(factory, job.job_id) for job in jobs] == statuses
    errors = factory.conn.execute(
        "select error ->> 'type', error ->> 'message' from laneway.jobs_view"
        " where error ->> 'type' like 'Invalid%'"
    ).fetchall()
    assert len(errors) == 1
    assert errors[0][1].startswith("result: is not JSON")


async def test_each_call_reports_cancelled_job(calls: Calls, factory: JobFactory) -> None:
    (one,) = await at_hand(calls, factory)
    factory.conn.execute("update laneway.lease set cancel_requested_at = now(), cancel_by = 'op'")
    assert await calls.beat(one) == [CANCEL_REQUESTED]
    (noted,) = await calls.report(pb.Update(claim=sent(one), steps=[pb.Step(name="s", result="1")]))
    assert noted.answer == CANCEL_REQUESTED
    assert (await calls.acquire(one, {"openai": 1})).answer == CANCEL_REQUESTED
    answer = await calls.results(pb.Result(claim=sent(one), finish=pb.Finish(result="1")))
    assert (list(answer.answers), list(answer.statuses)) == ([CANCEL_REQUESTED], ["cancelled"])


async def test_first_result_of_a_step_counts(calls: Calls, factory: JobFactory) -> None:
    (one,) = await at_hand(calls, factory)

    def update(result: str) -> pb.Update:
        steps = [pb.Step(name=name, result=result, took_ms=5) for name in ("a", "b")]
        return pb.Update(claim=sent(one), steps=steps)

    for result in ("1", "2"):
        (noted,) = await calls.report(update(result))
        assert noted.answer == ACCEPTED
        assert [(step.name, step.result) for step in noted.steps] == [("a", "1"), ("b", "1")]


async def test_two_updates_of_one_job_in_one_call_are_both_kept(
    calls: Calls, factory: JobFactory
) -> None:
    (one,) = await at_hand(calls, factory)
    noted = await calls.report(
        pb.Update(claim=sent(one), done=1, total=9, message="old"),
        pb.Update(claim=sent(one), done=2),
    )
    assert [each.answer for each in noted] == [ACCEPTED, ACCEPTED]
    row = factory.conn.execute("select done, total, message from laneway.progress").fetchone()
    assert row == (2.0, 9.0, "old")


async def test_locked_row_does_not_delay_other_results(
    calls: Calls, factory: JobFactory, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.rpc.server.service.BUSY_S", 0.1)
    monkeypatch.setattr("laneway.rpc.server.result_batcher.BUSY_S", 0.1)
    locked, free = await at_hand(calls, factory, 2)
    with psycopg.connect(dsn, application_name="tests") as other:
        other.execute(
            "select from laneway.lease l join laneway.jobs j using (seq) where j.id = %s"
            " for update of l",
            [locked.job_id],
        )
        assert await calls.beat(locked, free) == [AGAIN, ACCEPTED]
        noted = await calls.report(*(pb.Update(claim=sent(c), done=1) for c in (locked, free)))
        assert [one.answer for one in noted] == [AGAIN, ACCEPTED]
        assert (await calls.acquire(locked, {"openai": 1})).is_full
        assert await calls.finish(locked, free) == [AGAIN, ACCEPTED]
        other.rollback()
    assert await calls.finish(locked, free) == [ACCEPTED, ACCEPTED]


async def test_leases_are_renewed_while_limit_row_is_locked(
    calls: Calls, factory: JobFactory, dsn: str
) -> None:
    first, second = await at_hand(calls, factory, 2)
    with psycopg.connect(dsn, application_name="tests") as other:
        other.execute("select from laneway.limits for update")
        waiting = asyncio.ensure_future(calls.acquire(first, {"openai": 1}))
        await wait_until(lambda: is_waiting(factory))
        assert await calls.beat(first, second) == [ACCEPTED, ACCEPTED]
        (noted,) = await calls.report(pb.Update(claim=sent(second), done=1))
        assert noted.answer == ACCEPTED
        assert not waiting.done()
        other.rollback()
    assert (await waiting).answer == ACCEPTED


def is_waiting(factory: JobFactory) -> bool:
    row = factory.conn.execute(
        "select count(*) from pg_stat_activity where application_name = 'laneway limits'"
        " and wait_event_type = 'Lock' and datname = current_database()"
    ).fetchone()
    return row == (1,)


async def test_only_a_worker_itself_allows_jobs_ahead_of_its_room(
    rpc: RpcHarness, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_capacity, "AHEAD_S", 3600.0)
    ann, bob = people.new("ann", "remote_worker"), people.new("bob", "remote_worker")
    calls = rpc.call(ann)
    (one,) = await at_hand(calls, factory)
    stream = rpc.replica.stream_of(UUID(calls.worker_id), ann.id)
    assert stream is not None

    async def allow(of: Calls, count: int) -> None:
        result = pb.Result(claim=sent(one), finish=pb.Finish())
        asked = pb.ReportResultRequest(
            worker_id=calls.worker_id, results=[result], ahead={"default": count}
        )
        await of.make("ReportResult", asked)

    for count in (-1, 10_001):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await allow(calls, count)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert (refused.value.details() or "").startswith("ahead[default]: must be from 0 to ")
    await allow(rpc.call(bob), 7)
    assert stream.room.ahead("default") == 0
    await allow(calls, 7)
    assert stream.room.ahead("default") == 7


async def test_limits_are_held_for_call_and_released(calls: Calls, factory: JobFactory) -> None:
    first, second = await at_hand(calls, factory, 2)
    factory.conn.execute("update laneway.limits set max_concurrent = 1 where name = 'openai'")
    held = await calls.acquire(first, {"openai": 1})
    assert (held.answer, held.is_full) == (ACCEPTED, False)
    full = await calls.acquire(second, {"openai": 1})
    assert (full.answer, full.is_full) == (ACCEPTED, True)
    assert await calls.release(first, {"openai": 0}) == ACCEPTED
    assert not (await calls.acquire(second, {"openai": 1})).is_full
    assert not (await calls.acquire(second, {"nowhere": 1})).is_full
    created = "select max_concurrent from laneway.limits where name = 'nowhere'"
    assert factory.conn.execute(created).fetchone() == (None,)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await calls.acquire(second, {"No Where": 1})
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (refused.value.details() or "").startswith("limit: must be 1 to 63 characters")


async def test_result_of_an_analysis_is_the_plan_of_its_job(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    declared = pb.JobType(name="costly", has_analysis=True, declaration='{"approval": true}')
    stream = await calls.connected([declared])
    job_id = factory.submit("costly")
    rpc.replica.poller.wake()
    (one,) = await assigned(stream, 1)
    assert (one.job_type, one.is_analysis) == ("costly", True)
    analysis = Analysis(plan="a plan", tokens=7).to_dict()
    result = pb.Result(claim=sent(one), finish=pb.Finish(result=json.dumps(analysis)))
    for _ in range(2):
        answer = await calls.results(result)
        assert list(answer.answers) == [ACCEPTED]
        assert list(answer.statuses) == ["awaiting_approval"]
    row = factory.conn.execute(
        "select analysis from laneway.jobs_view where id = %s", [job_id]
    ).fetchone()
    assert row == (analysis,)


async def test_room_comes_back_with_each_result(calls: Calls, factory: JobFactory) -> None:
    for _ in range(3):
        factory.submit()
    stream = await calls.connected(max_in_flight=1)
    for _ in range(3):
        (one,) = await assigned(stream, 1)
        running = factory.conn.execute("select count(*) from laneway.lease").fetchone()
        assert running == (1,)
        assert await calls.finish(one) == [ACCEPTED]


async def test_reported_memory_is_shown_for_its_worker(
    rpc: RpcHarness, people: People, calls: Calls, factory: JobFactory
) -> None:
    await calls.connected()
    size = 123 << 20
    other = rpc.call(people.new("bob", "remote_worker"))
    for caller, reported in ((calls, size), (other, 5)):
        asked = pb.HeartbeatRequest(worker_id=calls.worker_id, memory_bytes=reported)
        await caller.make("Heartbeat", asked)
    rpc.replica.presence.touch_now()
    stored = "select memory_bytes from laneway.workers where id = %s"
    await wait_until(lambda: factory.conn.execute(stored, [calls.worker_id]).fetchone() == (size,))


@pytest.mark.parametrize("call", ["Heartbeat", "ReportProgress"])
async def test_worker_frees_slot_when_attempt_is_over(
    rpc: RpcHarness, calls: Calls, factory: JobFactory, call: str
) -> None:
    (one,) = await at_hand(calls, factory)
    factory.conn.execute("delete from laneway.lease")
    if call == "Heartbeat":
        assert await calls.beat(one) == [FENCED]
    else:
        (noted,) = await calls.report(pb.Update(claim=sent(one), done=1))
        assert noted.answer == FENCED
    assert len(rpc.replica.assignments) == 0


async def test_another_replica_serves_the_calls_of_a_worker_as_well(
    rpc: RpcHarness, people: People, factory: JobFactory, dsn: str
) -> None:
    ann = people.new("ann", "remote_worker")
    calls = rpc.call(ann)
    first, second = await at_hand(calls, factory, 2)
    database = Database(dsn, rpc.settings, role="tests elsewhere")
    async with RpcHarness(dsn, rpc.settings, database) as other:
        elsewhere = other.call(ann)
        elsewhere.worker_id = calls.worker_id
        assert await elsewhere.beat(first, second) == [ACCEPTED, ACCEPTED]
        assert await elsewhere.finish(first) == [ACCEPTED]
        assert await calls.finish(first) == [ACCEPTED]
        assert await calls.finish(second) == [ACCEPTED]
        assert await elsewhere.finish(second) == [ACCEPTED]
        assert await other.call(ann).finish(first) == [FENCED], "it was another worker's"
    await database.close()


@pytest.mark.parametrize(
    "name, request_, place",
    [
        ("Heartbeat", pb.HeartbeatRequest(worker_id="me"), "worker_id"),
        ("Heartbeat", pb.HeartbeatRequest(claims=[pb.Claim()] * (MAX_CLAIMS + 1)), "claims"),
        ("Heartbeat", pb.HeartbeatRequest(claims=[pb.Claim(job_id="x")]), "claims[0].job_id"),
        (
            "Heartbeat",
            pb.HeartbeatRequest(claims=[pb.Claim(job_id=str(uuid4()))]),
            "claims[0].attempt",
        ),
        ("ReportResult", pb.ReportResultRequest(results=[pb.Result()]), "results[0].outcome"),
        (
            "ReportResult",
            pb.ReportResultRequest(results=[pb.Result(release=pb.Release())]),
            "results[0].claim.job_id",
        ),
        (
            "ReportProgress",
            pb.ReportProgressRequest(
                updates=[pb.Update(claim=pb.Claim(job_id=str(uuid4()), attempt=1), checkpoint="{")]
            ),
            "updates[0].checkpoint",
        ),
        ("AcquireLimits", pb.AcquireLimitsRequest(wants={"a": 0}), "wants[a]"),
        ("ReleaseLimits", pb.ReleaseLimitsRequest(keeps={"a": -1}), "keeps[a]"),
        ("StreamJobs", pb.StreamJobsRequest(max_in_flight=MAX_IN_FLIGHT + 1), "max_in_flight"),
    ],
)
async def test_invalid_field_is_refused_with_field_and_rule(
    calls: Calls, name: str, request_: Any, place: str
) -> None:
    if not request_.worker_id:
        request_.worker_id = calls.worker_id
    is_stream = name == "StreamJobs"
    call = calls.stream_of(request_).read() if is_stream else calls.make(name, request_)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(refused.value.details()).startswith(f"{place}: ")


async def test_arbitrary_bytes_are_refused(rpc: RpcHarness, people: People) -> None:
    token = people.new("ann", "remote_worker").token
    call: Any = rpc.channel.unary_unary("/laneway.v1.DispatchService/Heartbeat")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"\xff\xff\xff", metadata=[("authorization", f"Bearer {token}")])
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    unknown: Any = rpc.channel.unary_unary("/laneway.v1.DispatchService/Nothing")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await unknown(b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_calls_that_arrive_together_are_written_together(
    rpc: RpcHarness, calls: Calls, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = await at_hand(calls, factory, 8)
    sizes: list[int] = []
    asked = 0
    run, find = Database.run, Ownership.find

    async def found(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return await find(*args)

    async def slow(database: Database, statement: Any) -> Any:
        if statement.name == "leases/renew_leases":
            sizes.append(len(statement.params["seqs"]))
            await wait_until(lambda: asked == 8)
        return await run(database, statement)

    monkeypatch.setattr(Ownership, "find", found)
    monkeypatch.setattr(Database, "run", slow)
    progressed = await asyncio.gather(*(calls.beat(job) for job in jobs))
    assert progressed == [[ACCEPTED]] * 8
    assert sum(sizes) == 8
    assert len(sizes) == 2, "the first went alone, and the others waited for it together"


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little goes together, as it costs a test a tenth."""
    monkeypatch.setattr("laneway.rpc.server.writes.MAX_WEIGHT", 80)


@pytest.mark.usefixtures("light")
async def test_large_checkpoints_of_several_calls_are_not_written_together(
    rpc: RpcHarness, calls: Calls, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = await at_hand(calls, factory, 4)
    run = rpc.replica.database.run
    sizes: list[int] = []

    async def noting(statement: Any) -> Any:
        if statement.name == "leases/report_progress":
            sizes.append(sum(map(len, statement.params["checkpoints"])))
        return await run(statement)

    monkeypatch.setattr(rpc.replica.database, "run", noting)
    large = f'"{"x" * 500_000}"'
    progressed = await asyncio.gather(
        *(calls.report(pb.Update(claim=sent(one), checkpoint=large)) for one in jobs)
    )
    assert [one.answer for each in progressed for one in each] == [ACCEPTED] * 4
    assert sum(sizes) == 4 * len(large)
    assert max(sizes) <= 2 * len(large)


async def test_slow_parsing_does_not_block_other_calls(
    calls: Calls, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[str] = []
    read = messages.read_update

    def noting(*args: Any) -> messages.ProgressUpdate:
        readers.append(threading.current_thread().name)
        return read(*args)

    monkeypatch.setattr(messages, "read_update", noting)
    factory.submit()
    (one,) = await assigned(await calls.connected(), 1)
    for size in (1, 100_000):
        (progressed,) = await calls.report(pb.Update(claim=sent(one), checkpoint=f'"{"x" * size}"'))
        assert progressed.answer == ACCEPTED
    assert readers[0] == threading.main_thread().name
    assert readers[1].startswith("laneway read")
