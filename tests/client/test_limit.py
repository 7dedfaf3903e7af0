"""Limits held outside of jobs: never exceeded, shared fairly with jobs, freed after a crash."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any
from uuid import UUID, uuid4

import pytest

from laneway.client import Client
from laneway.errors import InvalidInput, Refused
from laneway.store import call_limits, holds
from laneway.store.statement import Statement
from tests.support.store_client import StoreClient
from tests.support.worker_harness import wait_until

USED = "select coalesce(sum(running), 0)::integer from laneway.limit_usage"
LAPSED = "update laneway.limit_holds set lease_until = clock_timestamp() - interval '1 s'"


@pytest.fixture(autouse=True)
def narrow(db: StoreClient) -> None:
    for table in ("limit_holds", "limit_waiters", "limit_usage"):
        db.do(f"delete from laneway.{table}")
    db.do(
        "insert into laneway.limits (name, max_concurrent) values ('narrow', 2)"
        " on conflict (name) do update set max_concurrent = 2"
    )


async def test_no_more_than_the_limit_are_inside_at_once(client: Client, db: StoreClient) -> None:
    inside: list[int] = []
    most = 0

    async def request(n: int) -> None:
        nonlocal most
        async with client.limit("narrow"):
            inside.append(n)
            most = max(most, len(inside))
            assert db.one(USED) <= 2
            await asyncio.sleep(0)
            inside.remove(n)

    async with asyncio.timeout(60):
        await asyncio.gather(*(request(n) for n in range(8)))
    assert 1 <= most <= 2
    # No counter of the process remains.
    assert db.rows("select 1 from laneway.limit_usage") == []
    assert db.rows("select 1 from laneway.limit_holds") == []


@pytest.mark.parametrize("priority", [-32769, 32768, True, 1.5])
async def test_priority_of_a_request_has_the_range_of_jobs(client: Client, priority: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number from -32768 to 32767"):
        async with client.limit("narrow", priority=priority):
            raise AssertionError


async def test_job_and_request_share_one_limit(client: Client, db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    job = db.running()
    assert db.run(call_limits.acquire(job, {"narrow": 1})).answer == "granted"
    held_by = "narrow is held by a job of type t"
    with pytest.raises(TimeoutError, match=rf"limit narrow: no room within 0.05 s; {held_by}"):
        async with client.limit("narrow", timeout=0.05):
            pytest.fail("it is held by the job")
    # A request that gave up no longer waits.
    assert db.rows("select 1 from laneway.limit_holds") == []
    assert db.rows("select 1 from laneway.limit_turns where waits") == []
    db.run(call_limits.release(job, {"narrow": 0}))
    async with client.limit("narrow", timeout=60):
        assert db.run(call_limits.acquire(job, {"narrow": 1})).answer == "full"


async def test_request_of_higher_priority_goes_before_a_job(
    client: Client, db: StoreClient
) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    first, second = db.running(), db.running()
    assert db.run(call_limits.acquire(first, {"narrow": 1})).answer == "granted"
    holder = holds.Holder(uuid4(), "host")
    hold_id = uuid4()
    assert db.run(holds.hold(hold_id, holder, ["narrow"], -10, 15.0)).answer == "full"
    db.run(call_limits.release(first, {"narrow": 0}))
    assert db.run(call_limits.acquire(second, {"narrow": 1})).answer == "full"
    for _ in range(2):
        # Named twice, held once.
        assert db.run(holds.hold(hold_id, holder, ["narrow"], -10, 15.0)).answer == "granted"
    assert db.one(USED) == 1
    assert db.run(holds.drop([hold_id])) == 1
    assert db.run(holds.drop([hold_id])) == 0
    assert db.one(USED) == 0


def test_crash_frees_the_limit(db: StoreClient) -> None:
    script = (
        "import asyncio, os, signal, sys\n"
        "from laneway import Laneway\n"
        "async def main():\n"
        "    async with Laneway(sys.argv[1]) as lw, lw.limit('narrow'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", script, db.dsn], check=False, timeout=60)
    assert db.one(USED) == 1
    assert db.one("select laneway.release_self_finished()") == 0
    db.do(LAPSED)
    assert db.one("select laneway.release_self_finished()") == 1
    assert db.one(USED) == 0


async def test_lapsed_hold_makes_room_for_next_request(client: Client, db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    dead = uuid4()
    holder = holds.Holder(uuid4(), "host")
    assert db.run(holds.hold(dead, holder, ["narrow"], 0, 15.0)).answer == "granted"
    db.do(LAPSED)
    async with client.limit("narrow", timeout=60):
        assert db.one(USED) == 1
        assert db.run(holds.renew([dead], 15.0)) == {dead}


async def test_hold_is_renewed_while_the_block_runs(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.client.limits.RENEW_S", 0.01)
    async with client.limit("narrow"):
        db.do(LAPSED)
        await wait_until(
            lambda: db.one("select lease_until > clock_timestamp() from laneway.limit_holds")
        )


def test_hold_is_renewed_in_a_later_event_loop(
    plain_client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.client.limits.RENEW_S", 0.01)

    async def leave_it_held() -> None:
        await plain_client.limit_holds.acquire(["narrow"], 0, 20)

    async def hold() -> None:
        db.do("delete from laneway.limit_holds")
        async with plain_client.limit("narrow"):
            db.do(LAPSED)
            await wait_until(
                lambda: db.one("select lease_until > clock_timestamp() from laneway.limit_holds")
            )
        await plain_client.database.close()

    asyncio.run(leave_it_held())
    asyncio.run(hold())


async def test_renewing_goes_on_after_any_failure(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew, refused = holds.renew, iter([Refused("not now")])

    def fail_once(*given: Any) -> Statement[set[UUID]]:
        for error in refused:
            raise error
        return renew(*given)

    monkeypatch.setattr("laneway.client.limits.RENEW_S", 0.01)
    monkeypatch.setattr(holds, "renew", fail_once)
    async with client.limit("narrow"):
        db.do(LAPSED)
        await wait_until(
            lambda: db.one("select lease_until > clock_timestamp() from laneway.limit_holds")
        )


async def test_timeout_names_processes_that_hold_the_limit(client: Client, db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    assert (
        db.run(holds.hold(uuid4(), holds.Holder(uuid4(), "far"), ["narrow"], 0, 15.0)).answer
        == "granted"
    )
    with pytest.raises(TimeoutError, match="narrow is held by a process on far"):
        async with client.limit("narrow", timeout=0.05):
            pytest.fail("another process holds it")


async def test_block_that_would_wait_for_itself_is_refused(client: Client, db: StoreClient) -> None:
    async with client.limit("narrow"):
        async with client.limit("narrow", timeout=20):
            assert db.one(USED) == 2
            with pytest.raises(InvalidInput, match="the surrounding code already holds narrow"):
                async with client.limit("narrow"):
                    pytest.fail("it would have waited for itself")
        # A released limit is no longer held.
        async with client.limit("narrow", timeout=20):
            assert db.one(USED) == 2
    assert db.one(USED) == 0


async def test_task_that_outlives_its_block_is_not_refused(client: Client, db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    has_ended = asyncio.Event()

    async def take_later() -> int:
        await has_ended.wait()
        async with client.limit("narrow", timeout=60):
            return int(db.one(USED))

    async with client.limit("narrow", timeout=60):
        task = asyncio.create_task(take_later())
        await asyncio.sleep(0)
    has_ended.set()
    assert await task == 1


def test_plain_block_that_would_wait_for_itself_is_refused(
    plain_client: Client, db: StoreClient
) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    with (
        plain_client.sync.limit("narrow", timeout=20),
        pytest.raises(InvalidInput, match="it would wait for itself"),
        plain_client.sync.limit("narrow"),
    ):
        pytest.fail("it would have waited for itself")


def test_plain_code_holds_a_limit(plain_client: Client, db: StoreClient) -> None:
    with plain_client.sync.limit("narrow", timeout=60):
        assert db.one(USED) == 1
    assert db.one(USED) == 0


async def test_limit_that_does_not_exist_is_created_without_a_bound(
    client: Client, db: StoreClient
) -> None:
    db.do("delete from laneway.limits where name = 'novel'")
    async with client.limit("novel"), client.limit("novel"):
        assert db.one(USED) == 2
    assert db.one("select max_concurrent from laneway.limits where name = 'novel'") is None
    # Deleted since, or in a database that was emptied: it is created again.
    db.do("delete from laneway.limits where name = 'novel'")
    async with client.limit("novel", "narrow"):
        assert db.one("select count(*) from laneway.limits where name = 'novel'") == 1
    db.do("delete from laneway.limits where name = 'novel'")
    with pytest.raises(InvalidInput, match="at least one"):
        async with client.limit():
            pytest.fail("no limit was named")
