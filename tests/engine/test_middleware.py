"""Middleware around handlers, wherever they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from laneway import Analysis, Cancel, Context, Laneway, Snooze, SyncContext
from laneway.engine.registry import Registry
from laneway.errors import ConfigError
from tests.engine import context_handlers
from tests.support.worker_harness import SOON, WorkerHarness

ISOLATIONS = ["async", "thread", "process"]
user: ContextVar[str] = ContextVar("user", default="nobody")


def adopt(harness: WorkerHarness) -> None:
    source: Registry = context_handlers.wrapped.handlers
    for handler in source:
        harness.lw.handlers.add(handler)
    for one in source.middleware:
        harness.lw.middleware(one)


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_first_middleware_is_outermost_and_may_change_the_result(
    harness: WorkerHarness, isolation: str
) -> None:
    adopt(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    assert await job.wait(60) == ["handler", "inner", "outer"]
    (attempt,) = (await job.get()).attempts
    assert [line.message for line in attempt.log] == [
        f"outer before {isolation}_job",
        "inner before",
    ]


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_middleware_sees_the_exception_of_the_handler(
    harness: WorkerHarness, isolation: str
) -> None:
    adopt(harness)
    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit(f"{isolation}_job", {"fails": True}))
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == "ValueError"
    assert ended.attempts[0].log[-1].message == "outer saw no luck"


async def test_context_variables_of_a_middleware_reach_the_handler(harness: WorkerHarness) -> None:
    @harness.lw.middleware
    async def authenticate(ctx: Context, call_next: Callable[[], Any]) -> Any:
        token = user.set(ctx.created_by or "")
        try:
            return await call_next()
        finally:
            user.reset(token)

    @harness.lw.middleware
    def authenticate_plain(ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
        user.set(ctx.created_by or "")
        return call_next()

    @harness.lw.handler("loop")
    async def loop(ctx: Context) -> str:
        await asyncio.sleep(0)
        return user.get()

    @harness.lw.handler("thread")
    def thread(ctx: SyncContext) -> str:
        return user.get()

    await harness.start_worker()
    for job_type in ("loop", "thread"):
        jobs = [
            await harness.lw.submit(job_type, created_by=name) for name in ("ann", "ben", "cid")
        ]
        assert [await job.wait(60) for job in jobs] == ["ann", "ben", "cid"]


@pytest.mark.parametrize("signal", ["snooze", "cancel", "stop"])
async def test_signal_that_a_middleware_swallows_is_raised_again(
    harness: WorkerHarness, signal: str
) -> None:
    running = asyncio.Event()

    @harness.lw.middleware
    async def swallow(ctx: Context, call_next: Callable[[], Any]) -> Any:
        try:
            return await call_next()
        except BaseException:
            return "swallowed"

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if signal == "snooze" and ctx.attempt == 1:
            raise Snooze(0.01)
        if signal == "cancel":
            raise Cancel("nothing to do")
        if signal == "stop" and ctx.attempt == 1:
            running.set()
            await asyncio.Event().wait()
        return "done"

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    if signal == "stop":
        await asyncio.wait_for(running.wait(), 60)
        # Released, not completed: another worker runs it.
        await worker.stop(0.0)
        harness.workers.remove(worker)
        await harness.start_worker()
    ended = await harness.ended(submitted)
    assert (ended.status, ended.result) == {
        "snooze": ("completed", "done"),
        "cancel": ("cancelled", None),
        "stop": ("completed", "done"),
    }[signal]


@pytest.mark.parametrize("isolation", ["async", "process"])
async def test_middleware_may_answer_for_a_handler_that_it_stopped_itself(
    harness: WorkerHarness, isolation: str
) -> None:
    handler = context_handlers.impatient.handlers[f"{isolation}_sleeper"]
    harness.lw.handlers.add(handler)
    for one in context_handlers.impatient.handlers.middleware:
        harness.lw.middleware(one)
    await harness.start_worker()
    job = await harness.lw.submit(handler.job_type)
    assert await job.wait(60) == "fallback"


async def test_timeout_of_the_handler_beats_the_fallback_of_a_middleware(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("job", timeout=0.05, max_retries=0)
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    @harness.lw.middleware
    async def fallback(ctx: Context, call_next: Callable[[], Any]) -> Any:
        try:
            return await call_next()
        except asyncio.CancelledError:
            return "fallback"

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert (ended.status, ended.error and ended.error.type) == ("failed", "Timeout")


async def test_plain_middleware_cannot_swallow_an_interruption(harness: WorkerHarness) -> None:
    @harness.lw.middleware
    def swallow(ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
        try:
            return call_next()
        except BaseException:
            return "swallowed"

    @harness.lw.handler("job")
    def job(ctx: SyncContext) -> str:
        for _ in ctx.track(iter(int, 1)):
            pass
        return "done"

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await submitted.cancel()
    ended = await harness.ended(submitted)
    assert (ended.status, ended.result) == ("cancelled", None)


async def test_error_that_a_middleware_handles_completes_the_job(harness: WorkerHarness) -> None:
    @harness.lw.middleware
    async def tolerate(ctx: Context, call_next: Callable[[], Any]) -> Any:
        try:
            return await call_next()
        except ValueError:
            return "tolerated"

    @harness.lw.handler("job")
    async def job(ctx: Context) -> str:
        raise ValueError("no luck")

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == "tolerated"


async def test_handler_runs_once_whatever_its_middleware_does(harness: WorkerHarness) -> None:
    calls: list[int] = []

    @harness.lw.middleware
    async def twice(ctx: Context, call_next: Callable[[], Any]) -> Any:
        await call_next()
        return await call_next()

    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        calls.append(1)

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert (ended.status, calls) == ("failed", [1])
    assert ended.error is not None
    assert "call_next was called twice" in ended.error.message


async def test_analysis_runs_without_middleware(harness: WorkerHarness) -> None:
    seen: list[str] = []

    @harness.lw.middleware
    async def note(ctx: Context, call_next: Callable[[], Any]) -> Any:
        seen.append("run")
        return await call_next()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan() -> Analysis:
        seen.append("analysis")
        return Analysis()

    await harness.start_worker()
    await (await harness.lw.submit("job")).wait(60)
    assert seen == ["analysis", "run"]


async def test_worker_names_handlers_without_middleware_of_their_kind(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.middleware
    async def note(ctx: Context, call_next: Callable[[], Any]) -> Any:
        return await call_next()

    @harness.lw.handler("loop")
    async def loop(ctx: Context) -> None: ...

    @harness.lw.handler("thread")
    def thread(ctx: SyncContext) -> None: ...

    await harness.start_worker()
    assert (
        "all middleware is async, so the plain handlers run without it: thread;"
        " add a middleware with def for them" in caplog.text
    )


def test_middleware_of_another_shape_is_refused() -> None:
    lw = Laneway("postgresql://unused@nowhere/nothing")

    def short(ctx: Context) -> None: ...

    def generator(ctx: Context, call_next: Any) -> Any:
        yield

    for wrong, rule in ((short, "must take"), (generator, "must not yield"), (5, "a function")):
        with pytest.raises(ConfigError, match=rule):
            lw.middleware(wrong)  # type: ignore[type-var]
