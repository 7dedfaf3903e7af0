"""Limits held for one call: never over the limit, in order, and nothing left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from laneway import Context, SyncContext
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store.database import Database
from laneway.store.statement import Statement
from tests.engine import child_features
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

HELD = "select coalesce(sum(running), 0)::integer from laneway.limit_usage"


def limit(harness: WorkerHarness, name: str, most: int | None = 1) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values (%s, %s)", name, most)


def is_free(harness: WorkerHarness) -> bool:
    """Nothing is held, neither by a lease nor by the counters."""
    leased = harness.one("select count(*) from laneway.lease where cardinality(limits) > 0")
    used = harness.one("select coalesce(sum(abs(running)), 0)::integer from laneway.limit_usage")
    return bool(leased == 0 and used == 0)


class Room:
    """Counts concurrent holders."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.order: list[int] = []
        self._lock = threading.Lock()

    def enter(self, n: int) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.order.append(n)

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_no_more_than_the_limit_are_inside_at_once(
    harness: WorkerHarness, isolation: str
) -> None:
    limit(harness, "narrow", 2)
    room, seen = Room(), []

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context, n: int) -> None:
        async with ctx.limit("narrow"):
            room.enter(n)
            seen.append(await asyncio.to_thread(harness.one, HELD))
            room.leave()

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext, n: int) -> None:
        with ctx.limit("narrow"):
            room.enter(n)
            with shop_lock:
                seen.append(harness.one(HELD))
            room.leave()

    shop_lock = threading.Lock()
    # Two workers: as good as two processes.
    await harness.start_worker()
    await harness.start_worker()
    jobs = [await harness.lw.submit(f"{isolation}_job", {"n": n}) for n in range(12)]
    for job in jobs:
        await job.wait(60)
    assert len(room.order) == 12
    assert 1 <= room.most <= 2
    assert all(1 <= now <= 2 for now in seen)
    await wait_until(lambda: is_free(harness))


@pytest.mark.parametrize("job_type", ["child_limit", "async_child_limit"])
async def test_child_holds_a_limit(harness: WorkerHarness, job_type: str) -> None:
    limit(harness, "narrow")
    await child_features.adopted_by(harness)
    jobs = [await harness.lw.submit(job_type) for _ in range(3)]
    for job in jobs:
        assert await job.wait(60) == "held"
    await wait_until(lambda: is_free(harness))


async def test_first_waiting_call_of_a_process_is_served_first(harness: WorkerHarness) -> None:
    limit(harness, "narrow", 0)
    waiting: list[int] = []
    room = Room()

    @harness.lw.handler("job")
    async def job(ctx: Context, n: int) -> None:
        waiting.append(n)
        async with ctx.limit("narrow"):
            room.enter(n)
            room.leave()

    await harness.start_worker()
    jobs = []
    for n in range(6):
        jobs.append(await harness.lw.submit("job", {"n": n}))
        await wait_until(lambda: len(waiting) == len(jobs))
    harness.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    for each in jobs:
        await each.wait(60)
    assert room.order == list(range(6))


async def test_only_the_first_waiting_call_asks(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(harness, "narrow", 0)
    asked: list[int] = []
    run = Database.run

    async def remember(self: Database, statement: Statement[Any]) -> Any:
        if statement.name == "limits/acquire_limit":
            asked.append(int(str(statement.params["seq"])))
        return await run(self, statement)

    monkeypatch.setattr(Database, "run", remember)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            pass

    await harness.start_worker()
    for _ in range(5):
        await harness.running(await harness.lw.submit("job"))
    await wait_until(lambda: len(asked) > 5)
    assert len(set(asked)) == 1


async def test_job_may_hold_a_limit_several_times_and_several_limits(
    harness: WorkerHarness,
) -> None:
    limit(harness, "one", 3)
    limit(harness, "two", 1)
    seen: list[Any] = []

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async def call() -> None:
            async with ctx.limit("one"):
                await everybody.wait()

        everybody = asyncio.Barrier(3)
        await asyncio.gather(call(), call(), call())
        async with ctx.limit("two", "one", "two"):
            seen.append(harness.one("select limits from laneway.lease"))

    await harness.start_worker()
    await (await harness.lw.submit("job")).wait(60)
    assert sorted(seen[0]) == ["one", "two"]
    await wait_until(lambda: is_free(harness))


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_job_does_not_wait_for_itself(
    harness: WorkerHarness, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor behind another that waits for it."""
    limit(harness, "narrow", 1)
    rule = (
        "limit: narrow is held by this job already, around this call, and its max_concurrent is 1"
    )
    asked = child_features.when_full(monkeypatch)

    @harness.lw.handler("async_job", max_retries=0)
    async def async_job(ctx: Context) -> None:
        async def deeper() -> None:
            with pytest.raises(InvalidInput, match=rule):
                async with ctx.limit("narrow", "openai"):
                    raise AssertionError("never inside")

        async with ctx.limit("narrow"):
            await asyncio.to_thread(asked.wait, 20)
            await deeper()
            await asyncio.gather(deeper(), deeper())
        async with ctx.limit("narrow"):
            pass

    @harness.lw.handler("thread_job", max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("narrow"):
            asked.wait(120)
            with pytest.raises(InvalidInput, match=rule), ctx.limit("narrow"):
                raise AssertionError("never inside")

    @harness.lw.handler("other")
    async def other(ctx: Context) -> None:
        await _inside(ctx, "narrow")

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    await wait_until(lambda: harness.one(HELD) == 1)
    behind = await harness.lw.submit("other")
    ended = await harness.ended(job)
    assert ended.status == "completed", ended.error
    await behind.wait(60)
    await wait_until(lambda: is_free(harness))


async def _inside(ctx: Context, name: str) -> None:
    async with ctx.limit(name):
        pass


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_jobs_own_calls_side_by_side_wait_for_each_other(
    harness: WorkerHarness, isolation: str
) -> None:
    limit(harness, "narrow", 2)

    @harness.lw.handler("async_job", max_retries=0)
    async def async_job(ctx: Context) -> None:
        await asyncio.gather(*(_inside(ctx, "narrow") for _ in range(8)))

    @harness.lw.handler("thread_job", max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        def call(_: int) -> None:
            with ctx.limit("narrow"):
                pass

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(call, range(8)))

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit(f"{isolation}_job"))
    assert ended.status == "completed", ended.error
    await wait_until(lambda: is_free(harness))


async def test_task_that_outlives_its_block_is_not_refused(harness: WorkerHarness) -> None:
    limit(harness, "narrow")

    @harness.lw.handler("job")
    async def job(ctx: Context) -> str:
        has_ended = asyncio.Event()

        async def take_later() -> str:
            await has_ended.wait()
            async with ctx.limit("narrow"):
                return "held"

        async with ctx.limit("narrow"):
            task = asyncio.create_task(take_later())
            await asyncio.sleep(0)
        has_ended.set()
        return await task

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == "held"


async def test_all_are_taken_or_none(harness: WorkerHarness) -> None:
    limit(harness, "free", 1)
    limit(harness, "taken", 0)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with ctx.limit("free", "taken"):
            pass

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    harness.do("update laneway.limits set max_concurrent = 1 where name = 'taken'")
    await submitted.wait(60)
    await wait_until(lambda: is_free(harness))


async def test_rate_is_waited_for(harness: WorkerHarness) -> None:
    limit(harness, "rated", None)
    harness.do("update laneway.limits set rate_count = 2, rate_period_s = 0.5 where name = 'rated'")

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with ctx.limit("rated"):
            pass

    await harness.start_worker()
    jobs = [await harness.lw.submit("job") for _ in range(5)]
    for each in jobs:
        await each.wait(60)
    slices = harness.rows("select slice, started from laneway.limit_starts")
    sums = [sum(n for at, n in slices if first <= at < first + 500_000) for first, _ in slices]
    assert max(sums) <= 2


@pytest.mark.parametrize("isolation", ["async", "thread", "child", "async_child"])
async def test_cancelled_waiter_leaves_nothing(harness: WorkerHarness, isolation: str) -> None:
    limit(harness, "narrow", 0)

    @harness.lw.handler("async_limit")
    async def async_job(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            raise AssertionError("never inside")

    @harness.lw.handler("thread_limit")
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("narrow"):
            raise AssertionError("never inside")

    await child_features.adopted_by(harness)
    job = await harness.lw.submit(f"{isolation}_limit")
    await harness.running(job)
    behind = await harness.lw.submit(f"{isolation}_limit")
    await harness.running(behind)
    await job.cancel()
    assert (await harness.ended(job, 60)).status == "cancelled"
    await behind.cancel()
    assert (await harness.ended(behind, 60)).status == "cancelled"
    await wait_until(harness.holds_nothing)
    assert is_free(harness)


async def test_grant_to_a_cancelled_call_is_released(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(harness, "narrow", 1)
    granted, may_answer = asyncio.Event(), asyncio.Event()
    run, calls = Database.run, iter(range(100))

    async def hold_back(self: Database, statement: Statement[Any]) -> Any:
        answer = await run(self, statement)
        if statement.name == "limits/acquire_limit" and next(calls) == 0:
            granted.set()
            await may_answer.wait()
        return answer

    monkeypatch.setattr(Database, "run", hold_back)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), ctx.limit("narrow"):
                raise AssertionError("never inside")
        await granted.wait()
        may_answer.set()
        async with ctx.limit("narrow"):
            return "held"

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == "held"
    await wait_until(lambda: is_free(harness))


async def test_lost_response_causes_no_second_holder(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(harness, "narrow", 1)
    run, losses = Database.run, iter([True, False, True, False])

    async def lose(self: Database, statement: Statement[Any]) -> Any:
        answer = await run(self, statement)
        if statement.name.startswith("limits/") and next(losses, False):
            raise DatabaseUnavailable("connection lost")
        return answer

    monkeypatch.setattr(Database, "run", lose)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> list[str]:
        async with ctx.limit("narrow"):
            return list(harness.one("select limits from laneway.lease"))

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == ["narrow"]
    await wait_until(lambda: is_free(harness))


async def test_limit_goes_back_with_the_lease(harness: WorkerHarness) -> None:
    """A crash inside gives it back as it gives back the slot."""
    limit(harness, "narrow", 1)
    inside, let_go = threading.Event(), threading.Event()

    @harness.lw.handler("job", retry=SOON)
    def job(ctx: SyncContext) -> str:
        with ctx.limit("narrow"):
            if ctx.attempt == 1:
                inside.set()
                let_go.wait(120)
            return "held"

    await harness.start_worker_with({"heartbeat_fraction": 0.99})
    submitted = await harness.lw.submit("job")
    await wait_until(inside.is_set)
    harness.lapse(submitted)
    assert await submitted.wait(60) == "held"
    let_go.set()
    await wait_until(harness.holds_nothing)
    await wait_until(lambda: is_free(harness))


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_limit_of_the_whole_run_is_refused_for_a_call(
    harness: WorkerHarness, isolation: str
) -> None:
    limit(harness, "mine", 1)

    @harness.lw.handler("async_job", limits=["mine"], max_retries=0)
    async def async_job(ctx: Context) -> None:
        with pytest.raises(InvalidInput, match="limit: mine is held for the whole run already"):
            async with ctx.limit("mine"):
                pass
        with pytest.raises(InvalidInput, match="must be the name"):
            async with ctx.limit():
                pass

    @harness.lw.handler("thread_job", limits=["mine"], max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        with pytest.raises(InvalidInput, match="mine is held"), ctx.limit("mine"):
            pass

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit(f"{isolation}_job"))
    assert ended.status == "completed", ended.error
    await wait_until(lambda: is_free(harness))


async def test_child_gets_the_error_of_a_wrong_limit(harness: WorkerHarness) -> None:
    await child_features.adopted_by(harness)
    ended = await harness.ended(await harness.lw.submit("child_refused", {"how": "limit"}), 60)
    assert ended.error is not None
    assert ended.error.type == "InvalidInput"
    assert ended.error.message.startswith("limit: must be 1 to 63 characters")


async def test_waiting_handlers_do_not_keep_a_worker_from_stopping(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    harness = make_harness(shutdown_grace=0.1)
    limit(harness, "narrow", 0)

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            pass

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("narrow"):
            pass

    worker = await harness.start_worker()
    jobs = [await harness.lw.submit(kind) for kind in ("async_job", "thread_job")]
    for job in jobs:
        await harness.running(job)
    await worker.stop()
    assert [harness.status(job) for job in jobs] == ["approved", "approved"]
    assert harness.holds_nothing()
