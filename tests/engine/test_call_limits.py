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
from tests.engine import held
from tests.engine.workshop import SOON, Workshop, until

HELD = "select coalesce(sum(running), 0)::integer from laneway.limit_usage"


def limit(shop: Workshop, name: str, most: int | None = 1) -> None:
    shop.do("insert into laneway.limits (name, max_concurrent) values (%s, %s)", name, most)


def is_free(shop: Workshop) -> bool:
    """Nothing is held, neither by a lease nor by the counters."""
    leased = shop.one("select count(*) from laneway.lease where cardinality(limits) > 0")
    used = shop.one("select coalesce(sum(abs(running)), 0)::integer from laneway.limit_usage")
    return bool(leased == 0 and used == 0)


class Room:
    """Counts who is inside at once."""

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
async def test_no_more_than_the_limit_are_inside_at_once(shop: Workshop, isolation: str) -> None:
    limit(shop, "narrow", 2)
    room, seen = Room(), []

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context, n: int) -> None:
        async with ctx.limit("narrow"):
            room.enter(n)
            seen.append(await asyncio.to_thread(shop.one, HELD))
            room.leave()

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext, n: int) -> None:
        with ctx.limit("narrow"):
            room.enter(n)
            with shop_lock:
                seen.append(shop.one(HELD))
            room.leave()

    shop_lock = threading.Lock()
    # Two workers: as good as two processes.
    await shop.hire()
    await shop.hire()
    jobs = [await shop.lw.submit(f"{isolation}_job", {"n": n}) for n in range(12)]
    for job in jobs:
        await job.wait(60)
    assert len(room.order) == 12
    assert 1 <= room.most <= 2
    assert all(1 <= now <= 2 for now in seen)
    await until(lambda: is_free(shop))


@pytest.mark.parametrize("job_type", ["child_limit", "async_child_limit"])
async def test_a_child_holds_a_limit(shop: Workshop, job_type: str) -> None:
    limit(shop, "narrow")
    await held.adopted_by(shop)
    jobs = [await shop.lw.submit(job_type) for _ in range(3)]
    for job in jobs:
        assert await job.wait(60) == "held"
    await until(lambda: is_free(shop))


async def test_first_waiting_call_of_a_process_is_served_first(shop: Workshop) -> None:
    limit(shop, "narrow", 0)
    waiting: list[int] = []
    room = Room()

    @shop.lw.handler("job")
    async def job(ctx: Context, n: int) -> None:
        waiting.append(n)
        async with ctx.limit("narrow"):
            room.enter(n)
            room.leave()

    await shop.hire()
    jobs = []
    for n in range(6):
        jobs.append(await shop.lw.submit("job", {"n": n}))
        await until(lambda: len(waiting) == len(jobs))
    shop.do("update laneway.limits set max_concurrent = 1 where name = 'narrow'")
    for each in jobs:
        await each.wait(60)
    assert room.order == list(range(6))


async def test_only_the_first_waiting_call_asks(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(shop, "narrow", 0)
    asked: list[int] = []
    run = Database.run

    async def remember(self: Database, statement: Statement[Any]) -> Any:
        if statement.name == "limits/acquire_limit":
            asked.append(int(str(statement.params["seq"])))
        return await run(self, statement)

    monkeypatch.setattr(Database, "run", remember)

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            pass

    await shop.hire()
    for _ in range(5):
        await shop.running(await shop.lw.submit("job"))
    await until(lambda: len(asked) > 5)
    assert len(set(asked)) == 1


async def test_a_job_may_hold_a_limit_several_times_and_several_limits(shop: Workshop) -> None:
    limit(shop, "one", 3)
    limit(shop, "two", 1)
    seen: list[Any] = []

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        async def call() -> None:
            async with ctx.limit("one"):
                await everybody.wait()

        everybody = asyncio.Barrier(3)
        await asyncio.gather(call(), call(), call())
        async with ctx.limit("two", "one", "two"):
            seen.append(shop.one("select limits from laneway.lease"))

    await shop.hire()
    await (await shop.lw.submit("job")).wait(60)
    assert sorted(seen[0]) == ["one", "two"]
    await until(lambda: is_free(shop))


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_a_job_does_not_wait_for_itself(
    shop: Workshop, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor behind another that waits for it."""
    limit(shop, "narrow", 1)
    rule = (
        "limit: narrow is held by this job already, around this call, and its max_concurrent is 1"
    )
    asked = held.when_full(monkeypatch)

    @shop.lw.handler("async_job", max_retries=0)
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

    @shop.lw.handler("thread_job", max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("narrow"):
            asked.wait(120)
            with pytest.raises(InvalidInput, match=rule), ctx.limit("narrow"):
                raise AssertionError("never inside")

    @shop.lw.handler("other")
    async def other(ctx: Context) -> None:
        await _inside(ctx, "narrow")

    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_job")
    await until(lambda: shop.one(HELD) == 1)
    behind = await shop.lw.submit("other")
    ended = await shop.ended(job)
    assert ended.status == "completed", ended.error
    await behind.wait(60)
    await until(lambda: is_free(shop))


async def _inside(ctx: Context, name: str) -> None:
    async with ctx.limit(name):
        pass


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_a_jobs_own_calls_side_by_side_wait_for_each_other(
    shop: Workshop, isolation: str
) -> None:
    limit(shop, "narrow", 2)

    @shop.lw.handler("async_job", max_retries=0)
    async def async_job(ctx: Context) -> None:
        await asyncio.gather(*(_inside(ctx, "narrow") for _ in range(8)))

    @shop.lw.handler("thread_job", max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        def call(_: int) -> None:
            with ctx.limit("narrow"):
                pass

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(call, range(8)))

    await shop.hire()
    ended = await shop.ended(await shop.lw.submit(f"{isolation}_job"))
    assert ended.status == "completed", ended.error
    await until(lambda: is_free(shop))


async def test_task_that_outlives_its_block_is_not_refused(shop: Workshop) -> None:
    limit(shop, "narrow")

    @shop.lw.handler("job")
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

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == "held"


async def test_all_are_taken_or_none(shop: Workshop) -> None:
    limit(shop, "free", 1)
    limit(shop, "taken", 0)

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with ctx.limit("free", "taken"):
            pass

    await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    shop.do("update laneway.limits set max_concurrent = 1 where name = 'taken'")
    await submitted.wait(60)
    await until(lambda: is_free(shop))


async def test_a_rate_is_waited_for(shop: Workshop) -> None:
    limit(shop, "rated", None)
    shop.do("update laneway.limits set rate_count = 2, rate_period_s = 0.5 where name = 'rated'")

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with ctx.limit("rated"):
            pass

    await shop.hire()
    jobs = [await shop.lw.submit("job") for _ in range(5)]
    for each in jobs:
        await each.wait(60)
    slices = shop.rows("select slice, started from laneway.limit_starts")
    sums = [sum(n for at, n in slices if first <= at < first + 500_000) for first, _ in slices]
    assert max(sums) <= 2


@pytest.mark.parametrize("isolation", ["async", "thread", "child", "async_child"])
async def test_a_cancelled_waiter_leaves_nothing_behind(shop: Workshop, isolation: str) -> None:
    limit(shop, "narrow", 0)

    @shop.lw.handler("async_limit")
    async def async_job(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            raise AssertionError("never inside")

    @shop.lw.handler("thread_limit")
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("narrow"):
            raise AssertionError("never inside")

    await held.adopted_by(shop)
    job = await shop.lw.submit(f"{isolation}_limit")
    await shop.running(job)
    behind = await shop.lw.submit(f"{isolation}_limit")
    await shop.running(behind)
    await job.cancel()
    assert (await shop.ended(job, 60)).status == "cancelled"
    await behind.cancel()
    assert (await shop.ended(behind, 60)).status == "cancelled"
    await until(shop.holds_nothing)
    assert is_free(shop)


async def test_grant_to_a_cancelled_call_is_released(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(shop, "narrow", 1)
    granted, may_answer = asyncio.Event(), asyncio.Event()
    run, calls = Database.run, iter(range(100))

    async def hold_back(self: Database, statement: Statement[Any]) -> Any:
        answer = await run(self, statement)
        if statement.name == "limits/acquire_limit" and next(calls) == 0:
            granted.set()
            await may_answer.wait()
        return answer

    monkeypatch.setattr(Database, "run", hold_back)

    @shop.lw.handler("job")
    async def job(ctx: Context) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), ctx.limit("narrow"):
                raise AssertionError("never inside")
        await granted.wait()
        may_answer.set()
        async with ctx.limit("narrow"):
            return "held"

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == "held"
    await until(lambda: is_free(shop))


async def test_an_answer_lost_is_no_second_holder(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(shop, "narrow", 1)
    run, losses = Database.run, iter([True, False, True, False])

    async def lose(self: Database, statement: Statement[Any]) -> Any:
        answer = await run(self, statement)
        if statement.name.startswith("limits/") and next(losses, False):
            raise DatabaseUnavailable("connection lost")
        return answer

    monkeypatch.setattr(Database, "run", lose)

    @shop.lw.handler("job")
    async def job(ctx: Context) -> list[str]:
        async with ctx.limit("narrow"):
            return list(shop.one("select limits from laneway.lease"))

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == ["narrow"]
    await until(lambda: is_free(shop))


async def test_a_limit_goes_back_with_the_lease(shop: Workshop) -> None:
    """A crash inside gives it back as it gives back the slot."""
    limit(shop, "narrow", 1)
    inside, let_go = threading.Event(), threading.Event()

    @shop.lw.handler("job", retry=SOON)
    def job(ctx: SyncContext) -> str:
        with ctx.limit("narrow"):
            if ctx.attempt == 1:
                inside.set()
                let_go.wait(120)
            return "held"

    await shop.hire_unlike({"heartbeat_fraction": 0.99})
    submitted = await shop.lw.submit("job")
    await until(inside.is_set)
    shop.lapse(submitted)
    assert await submitted.wait(60) == "held"
    let_go.set()
    await until(shop.holds_nothing)
    await until(lambda: is_free(shop))


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_undefined_limit_is_refused_by_name(shop: Workshop, isolation: str) -> None:
    limit(shop, "mine", 1)

    @shop.lw.handler("async_job", limits=["mine"], max_retries=0)
    async def async_job(ctx: Context) -> None:
        with pytest.raises(InvalidInput, match="limit: nowhere does not exist"):
            async with ctx.limit("openai", "nowhere"):
                pass
        with pytest.raises(InvalidInput, match="limit: mine is held for the whole run already"):
            async with ctx.limit("mine"):
                pass
        with pytest.raises(InvalidInput, match="must be the name"):
            async with ctx.limit():
                pass

    @shop.lw.handler("thread_job", limits=["mine"], max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        for names, rule in (("openai nowhere", "nowhere does not exist"), ("mine", "mine is held")):
            with pytest.raises(InvalidInput, match=rule), ctx.limit(*names.split()):
                pass

    await shop.hire()
    ended = await shop.ended(await shop.lw.submit(f"{isolation}_job"))
    assert ended.status == "completed", ended.error
    await until(lambda: is_free(shop))


async def test_child_gets_the_error_of_a_wrong_limit(shop: Workshop) -> None:
    await held.adopted_by(shop)
    ended = await shop.ended(await shop.lw.submit("child_refused", {"how": "limit"}), 60)
    assert ended.error is not None
    assert ended.error.type == "InvalidInput"
    assert ended.error.message.startswith("limit: nowhere does not exist; create it with")


async def test_waiting_handlers_do_not_keep_a_worker_from_stopping(
    workshop: Callable[..., Workshop],
) -> None:
    shop = workshop(shutdown_grace=0.1)
    limit(shop, "narrow", 0)

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            pass

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("narrow"):
            pass

    worker = await shop.hire()
    jobs = [await shop.lw.submit(kind) for kind in ("async_job", "thread_job")]
    for job in jobs:
        await shop.running(job)
    await worker.stop()
    assert [shop.status(job) for job in jobs] == ["approved", "approved"]
    assert shop.holds_nothing()
