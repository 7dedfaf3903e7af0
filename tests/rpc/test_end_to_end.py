"""A Python worker, a server and a database: what neither of them alone can show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date
from typing import Any

import pytest

from laneway import Analysis, Context, JobHandle, Laneway, SyncContext
from laneway.config.settings import Settings
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.worker import RemoteWorker
from tests.api.conftest import People
from tests.rpc.rpc_harness import RpcHarness
from tests.support.worker_harness import QUICK, SOON, WorkerHarness, wait_until


class Far(WorkerHarness):
    """A make_harness whose workers are remote; `app` has their handlers and no database."""

    def __init__(self, dsn: str, rpc: RpcHarness, token: str) -> None:
        super().__init__(dsn)
        self.rpc = rpc
        self.app = Laneway(embedded=False, **QUICK)
        self.token = token
        self.remote: list[RemoteWorker] = []

    async def hire_remote(self, *others: RpcHarness, **settings: Any) -> RemoteWorker:
        addresses = ",".join(one.address for one in (self.rpc, *others))
        worker = RemoteWorker(
            self.app.handlers,
            Settings.load(database_url=None, embedded=False, **{**QUICK, **settings}),
            Endpoint.to(addresses, self.token),
        )
        self.remote.append(worker)
        await worker.start()
        return worker


@pytest.fixture
async def far(
    dsn: str, rpc: RpcHarness, people: People, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Far]:
    monkeypatch.delenv("LANEWAY_DATABASE_URL", raising=False)
    people.role("trusted", "workers:claim", "workers:declare")
    robot = people.new("robot", "trusted", scope="all")
    async with Far(dsn, rpc, robot.token) as far:
        yield far
        for worker in far.remote:
            await worker.stop(0.0)


async def test_job_is_sent_run_and_completed(far: Far) -> None:
    @far.app.handler("shout", lane="far")
    async def shout(ctx: Context, text: str) -> str:
        ctx.log("shouting")
        return text.upper()

    worker = await far.hire_remote()
    job = await far.lw.submit("shout", {"text": "anybody there?"})
    assert await job.wait(60) == "ANYBODY THERE?"
    done = await job.get()
    assert (done.lane, done.attempts[0].worker) == ("far", worker.name)
    assert far.holds_nothing()


async def test_thousand_jobs_are_each_run_once(far: Far) -> None:
    ran: list[int] = []

    @far.app.handler("count")
    async def count(ctx: Context, n: int) -> int:
        ran.append(n)
        return n

    await far.hire_remote(concurrency=50)
    jobs = await far.lw.submit_many([("count", {"n": n}) for n in range(1000)])
    await wait_until(lambda: far.count("completed") == len(jobs))
    assert sorted(ran) == list(range(1000))
    assert far.holds_nothing()


async def test_steps_checkpoints_and_limits_are_kept_across_attempts(far: Far) -> None:
    calls: list[str] = []

    def once() -> str:
        calls.append("first")
        return "kept"

    @far.app.handler("twice", retry=SOON)
    async def twice(ctx: Context) -> Any:
        async with ctx.limit("openai"):
            first = await ctx.step("first", once)
        async for item in ctx.track(range(3), durable=True):
            calls.append(f"{ctx.attempt}:{item}")
            if ctx.attempt == 1 and item == 1:
                raise ValueError("once")
        return first

    await far.hire_remote()
    job = await far.lw.submit("twice")
    assert await job.wait(60) == "kept"
    assert calls == ["first", "1:0", "1:1", "2:1", "2:2"]
    done = await job.get()
    assert (done.attempt, done.retries) == (2, 1)
    assert done.attempts[0].error is not None
    assert done.attempts[0].error.type == "ValueError"


async def test_running_job_is_cancelled(far: Far) -> None:
    @far.app.handler("long")
    def long(ctx: SyncContext) -> None:
        ctx.save("begun")
        while True:
            ctx.check()

    await far.hire_remote()
    job = await far.lw.submit("long")
    await wait_until(lambda: _has_checkpoint(job))
    await job.cancel()
    assert (await far.ended(job)).status == "cancelled"
    assert far.holds_nothing()


async def _has_checkpoint(job: JobHandle) -> bool:
    return (await job.get()).checkpoint == "begun"


async def test_analysis_runs_before_its_job(far: Far) -> None:
    @far.app.handler("careful", approval=True)
    async def careful(ctx: Context, n: int) -> int:
        return n

    @careful.analyze
    async def plan(n: int) -> Analysis:
        return Analysis(plan={"n": n}, cost=n, currency="EUR")

    await far.hire_remote()
    job = await far.lw.submit("careful", {"n": 2}, created_by="ann")
    await wait_until(lambda: far.status(job) == "awaiting_approval")
    await far.lw.approve(job.id, "bob")
    assert await job.wait(60) == 2


async def test_stopping_worker_releases_jobs_without_charge(far: Far) -> None:
    begun = asyncio.Event()

    @far.app.handler("long")
    async def long(ctx: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = await far.hire_remote(concurrency=1)
    jobs = [await far.lw.submit("long") for _ in range(3)]
    await begun.wait()
    await worker.stop(0.0)
    for job in jobs:
        after = await job.get()
        assert (after.status, after.retries) == ("approved", 0)
    assert far.holds_nothing()


async def test_job_goes_on_when_its_replica_is_gone(
    far: Far, dsn: str, settings: Settings, database: Any
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @far.app.handler("long")
    async def long(ctx: Context) -> str:
        begun.set()
        await go_on.wait()
        return "once"

    async with RpcHarness(dsn, settings, database) as other:
        worker = await far.hire_remote(other)
        job = await far.lw.submit("long")
        await begun.wait()
        await far.rpc.server.stop(0)
        await wait_until(lambda: worker.job_stream.registered.is_set())
        go_on.set()
        assert await job.wait(60) == "once"
        assert (await job.get()).attempt == 1
        more = await far.lw.submit("long")
        assert await more.wait(60) == "once"
        await worker.stop(0.0)
    assert far.holds_nothing()


async def test_remote_worker_encodes_results_by_the_return_hint(far: Far) -> None:
    @far.app.handler("today")
    async def today(ctx: Context) -> dict[str, date]:
        return {"day": date(2026, 1, 2)}

    @far.app.handler("bad", retry=SOON)
    async def bad(ctx: Context) -> dict[str, date]:
        return {"day": "soon"}  # type: ignore[dict-item]

    await far.hire_remote()
    assert await (await far.lw.submit("today")).wait(60) == {"day": "2026-01-02"}
    ended = await far.ended(await far.lw.submit("bad"))
    assert (ended.status, ended.attempt) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.type == "InvalidResult"
    assert ended.error.message.startswith("result.day: must be a valid date")


async def test_remote_worker_runs_middleware_and_retry_functions(far: Far) -> None:
    @far.app.middleware
    async def count(ctx: Context, call_next: Callable[[], Awaitable[int]]) -> int:
        return 10 * await call_next()

    @far.app.handler("again", retry=lambda n, error: 0.01 if n == 1 else None)
    async def again(ctx: Context, until: int) -> int:
        if ctx.attempt < until:
            raise ValueError("no luck")
        return ctx.attempt

    await far.hire_remote()
    assert await (await far.lw.submit("again", {"until": 2})).wait(60) == 20
    ended = await far.ended(await far.lw.submit("again", {"until": 9}))
    assert (ended.status, ended.attempt) == ("failed", 2)


async def test_remote_worker_declares_uniqueness_of_its_jobs(far: Far) -> None:
    @far.app.handler("once", unique_for=3600, unique_by=["path"])
    async def once(ctx: Context, path: str, n: int = 1) -> None: ...

    await far.hire_remote()
    await wait_until(
        lambda: far.rows("select 1 from laneway.job_types where unique_for_s = 3600"), timeout=60
    )
    first = await far.lw.submit("once", {"path": "a"})
    await first.wait(60)
    again = await far.lw.submit("once", {"path": "a", "n": 2})
    assert (again.id, again.duplicate) == (first.id, True)
