"""Bounds of one attempt: stored data, rate of writes, and limits."""

from __future__ import annotations

import json
from typing import Any

import grpc
import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.control import job_type_health
from laneway.control.health_check import Finding
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.store.database import Database
from tests.api.conftest import People
from tests.rpc.rpc_harness import ACCEPTED, AGAIN, PATIENCE, Calls, RpcHarness, assigned, sent
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

INVALID = grpc.StatusCode.INVALID_ARGUMENT
MIB = 1024 * 1024


async def at_hand(calls: Calls, factory: JobFactory, count: int = 1) -> list[pb.Assignment]:
    for _ in range(count):
        factory.submit("greet")
    return await assigned(await calls.connected(["greet"]), count)


async def refused(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value.code()


def lines(*numbers: int, text: str = "x") -> list[pb.LogLine]:
    return [pb.LogLine(number=number, level="info", message=text) for number in numbers]


async def test_attempt_keeps_so_many_log_lines_and_bytes(
    rpc: RpcHarness, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    (one,) = await at_hand(calls, factory)
    for start in range(1, 25_001, 5000):
        update = pb.Update(claim=sent(one), lines=lines(*range(start, start + 5000)))
        assert [progressed.answer for progressed in await calls.report(update)] == [ACCEPTED]
    far = pb.Update(claim=sent(one), lines=lines(2**31 - 1))
    assert [progressed.answer for progressed in await calls.report(far)] == [ACCEPTED]
    found = conn.execute("select count(*), max(line) from laneway.logs").fetchone()
    assert found == (10_000, 10_000)
    last = conn.execute("select message from laneway.logs where line = 10000").fetchone()
    assert last == ("the log of this attempt is full: further lines are not kept",)


async def test_late_log_lines_are_short(
    rpc: RpcHarness, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    (one,) = await at_hand(calls, factory)
    await calls.report(pb.Update(claim=sent(one), lines=lines(1, 1001, text="y" * 5000)))
    kept = conn.execute("select line, length(message) from laneway.logs order by 1").fetchall()
    assert kept == [(1, 5000), (1001, 256)]


async def test_job_keeps_so_many_bytes_of_steps(
    rpc: RpcHarness, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    (one,) = await at_hand(calls, factory)
    large = json.dumps("x" * (MIB - 10))

    def step(name: str, result: str) -> Any:
        steps = [pb.Step(name=name, result=result)]
        return calls.report(pb.Update(claim=sent(one), steps=steps))

    for n in range(8):
        assert [progressed.answer for progressed in await step(f"s{n}", large)] == [ACCEPTED]
    assert await refused(step("s8", large)) is INVALID
    assert [progressed.answer for progressed in await step("s0", '"again"')] == [ACCEPTED], (
        "it is there"
    )
    assert await refused(step("s9", large)) is INVALID
    total = "select count(*), sum(octet_length(result::text)) <= 8388608 from laneway.steps"
    assert conn.execute(total).fetchone() == (8, True)
    assert await calls.finish(one) == [ACCEPTED]


async def test_job_keeps_so_many_steps(
    rpc: RpcHarness, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    (one,) = await at_hand(calls, factory)
    conn.execute(
        "insert into laneway.steps (seq, name, attempt, result, size)"
        " select l.seq, 's' || n, 1, 'null', 4 from laneway.lease l, generate_series(1, 4999) n"
    )
    last, more = (pb.Update(claim=sent(one), steps=[pb.Step(name=x)]) for x in ("last", "more"))
    assert [progressed.answer for progressed in await calls.report(last)] == [ACCEPTED]
    assert await refused(calls.report(more)) is INVALID
    assert conn.execute("select count(*) from laneway.steps").fetchone() == (5000,)


async def test_chatty_attempt_is_slowed_down_and_others_are_not(
    dsn: str, database: Database, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    # One report each, and the next after hours.
    few = Settings.load(database_url=dsn, remote_reports_per_second=0.0001)
    async with RpcHarness(dsn, few, database) as rpc:
        calls = rpc.call(people.new("ann", "remote_worker"))
        chatty, calm = await at_hand(calls, factory, 2)
        (progressed,) = await calls.report(pb.Update(claim=sent(chatty), done=1))
        assert progressed.answer == ACCEPTED
        both = [pb.Update(claim=sent(one), done=2) for one in (chatty, calm)]
        assert [progressed.answer for progressed in await calls.report(*both)] == [AGAIN, ACCEPTED]
        done = "select p.done from laneway.progress p join laneway.jobs j using (seq) where id = %s"
        stored = [conn.execute(done, [one.job_id]).fetchone() for one in (chatty, calm)]
        assert stored == [(1,), (2,)]
        assert await calls.finish(chatty, calm) == [ACCEPTED, ACCEPTED]


async def test_claim_token_holds_no_limit_for_a_call(
    rpc: RpcHarness, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker", lanes=["default"]))
    (one,) = await at_hand(calls, factory)
    for name in ("openai", "nowhere"):
        assert await refused(calls.acquire(one, {name: 8})) is INVALID
    held = "select coalesce(sum(running), 0) from laneway.limit_usage"
    assert conn.execute(held).fetchone() == (0,)


async def test_doctor_names_tokens_without_needed_permissions(
    rpc: RpcHarness, people: People, factory: JobFactory, database: Database
) -> None:
    assert (await job_type_health.check_remote_tokens(database)).finding is Finding.OK
    factory.publish("greet")
    calls = rpc.call(people.new("ann", "remote_worker", lanes=["default"]))
    factory.submit("greet")
    declared = pb.JobType(name="greet", declaration=json.dumps({"max_retries": 9}))
    (one,) = await assigned(calls.stream([declared]), 1)
    found = await job_type_health.check_remote_tokens(database)
    assert found.finding is Finding.WARN
    assert "ann declares job types that differ from the published ones" in found.message
    assert "ctx.limit" not in found.message
    for _ in range(3):
        assert await refused(calls.acquire(one, {"openai": 1})) is INVALID
    found = await job_type_health.check_remote_tokens(database)
    assert "handlers of ann ask for ctx.limit" in found.message
    assert "workers:declare" in (found.next or "")
    # However often it is asked, it is kept once.
    kept = "select count(*) from laneway.audit where action = 'AcquireLimits'"
    assert factory.conn.execute(kept).fetchone() == (1,)


async def test_limit_is_released_after_longest_hold(
    dsn: str, database: Database, people: People, factory: JobFactory
) -> None:
    short = Settings.load(database_url=dsn, remote_limit_hold=0.2)
    people.role("trusted", "workers:claim", "workers:declare")
    async with RpcHarness(dsn, short, database) as rpc:
        calls = rpc.call(people.new("ann", "trusted"))
        first, second = await at_hand(calls, factory, 2)
        assert not (await calls.acquire(first, {"ollama": 1})).is_full

        async def has_room() -> bool:
            return not (await calls.acquire(second, {"ollama": 1})).is_full

        await wait_until(has_room, PATIENCE)
        assert await calls.release(first, {"ollama": 0}) == ACCEPTED
        assert await calls.beat(first) == [ACCEPTED], "the job itself goes on"


async def test_hold_of_lost_replica_is_released_by_another(
    dsn: str, database: Database, people: People, factory: JobFactory
) -> None:
    short = Settings.load(database_url=dsn, remote_limit_hold=0.2)
    people.role("trusted", "workers:claim", "workers:declare")
    ann = people.new("ann", "trusted")
    async with RpcHarness(dsn, short, database) as gone:
        calls = gone.call(ann)
        first, second = await at_hand(calls, factory, 2)
        assert not (await calls.acquire(first, {"ollama": 1})).is_full
    async with RpcHarness(dsn, short, database) as other:
        elsewhere = other.call(ann)
        elsewhere.worker_id = calls.worker_id

        async def has_room() -> bool:
            assert await elsewhere.beat(first, second) == [ACCEPTED, ACCEPTED]
            return not (await elsewhere.acquire(second, {"ollama": 1})).is_full

        await wait_until(has_room, PATIENCE)


async def test_limit_released_at_another_replica_is_not_released_again(
    rpc: RpcHarness,
    dsn: str,
    database: Database,
    people: People,
    factory: JobFactory,
    conn: psycopg.Connection[Any],
) -> None:
    people.role("trusted", "workers:claim", "workers:declare")
    ann = people.new("ann", "trusted")
    calls = rpc.call(ann)
    (one,) = await at_hand(calls, factory)
    async with RpcHarness(dsn, rpc.settings, database) as other:
        elsewhere = other.call(ann)
        elsewhere.worker_id = calls.worker_id
        assert not (await calls.acquire(one, {"openai": 1})).is_full
        # The call began long ago, and another one overlaps it.
        conn.execute("update laneway.call_holds set until = until - interval '59 minutes'")
        assert not (await elsewhere.acquire(one, {"openai": 2})).is_full
        assert await elsewhere.release(one, {"openai": 1}) == ACCEPTED
    left = conn.execute(
        "select until > clock_timestamp() + interval '30 minutes' from laneway.call_holds"
    ).fetchall()
    assert left == [(True,)], "what is held was granted last"
