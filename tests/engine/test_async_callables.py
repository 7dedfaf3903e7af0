"""Async callables that do not look like `async def`, and calls that are never awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest

from laneway import Analysis, Context, Laneway
from laneway.engine.async_callable import hides_async, is_async
from laneway.errors import ConfigError
from tests.engine import context_handlers
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


class Greeter:
    async def __call__(self, ctx: Context, name: str = "you") -> str:
        await asyncio.sleep(0)
        return f"hello {name}"


class Around:
    async def __call__(self, ctx: Context, call_next: Callable[[], Any]) -> Any:
        return f"{await call_next()}!"


def plainly(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def blocking(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(fn(*args, **kwargs))

    return wrapper


async def greet(ctx: Context) -> str:
    return "hello"


@pytest.fixture
def lw() -> Laneway:
    return Laneway("postgresql://unused@nowhere/nothing")


async def test_object_with_an_async_call_is_an_async_middleware_and_handler(
    harness: WorkerHarness,
) -> None:
    harness.lw.middleware(Around())
    harness.lw.handler("object")(Greeter())
    harness.lw.handler("partial")(partial(Greeter(), name="Bea"))
    assert harness.lw.handlers["object"].isolation == "async"
    await harness.start_worker()
    assert await (await harness.lw.submit("object")).wait(60) == "hello you!"
    assert await (await harness.lw.submit("partial")).wait(60) == "hello Bea!"


def test_plain_wrapper_of_an_async_handler_is_refused_with_the_cure(lw: Laneway) -> None:
    with pytest.raises(
        ConfigError, match=r"greet: is a plain function around an async def.*isolation='thread'"
    ):
        lw.handler("job")(plainly(greet))
    with pytest.raises(ConfigError, match="is a plain function around an async def"):
        lw.middleware(plainly(Around().__call__))
    job = lw.handler("job", approval=True)(greet)

    async def look(ctx: Context) -> Analysis:
        return Analysis(cost=1, currency="EUR")

    with pytest.raises(ConfigError, match="analysis of 'job': look is a plain function around"):
        job.analyze(plainly(look))


async def test_plain_wrapper_that_runs_its_async_function_is_a_plain_handler(
    harness: WorkerHarness,
) -> None:
    harness.lw.handler("job", isolation="thread")(blocking(greet))
    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == "hello"


def test_function_that_wraps_itself_is_plain() -> None:
    def strange() -> None: ...

    strange.__wrapped__ = strange  # type: ignore[attr-defined]
    assert (is_async(strange), hides_async(strange)) == (False, False)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_result_that_was_not_awaited_is_a_failure_with_retries(
    harness: WorkerHarness, isolation: str
) -> None:
    harness.lw.handlers.add(context_handlers.forgetful.handlers[f"{isolation}_forgets"])
    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit(f"{isolation}_forgets"))
    assert (ended.status, ended.attempt) == ("failed", 2)
    assert ended.error is not None
    assert ended.error.type == "TypeError"
    assert "returned a coroutine, not a result: is an await missing?" in ended.error.message


async def test_middleware_that_forgets_to_await_is_a_failure_with_retries(
    harness: WorkerHarness,
) -> None:
    @harness.lw.middleware
    async def forgets(ctx: Context, call_next: Callable[[], Any]) -> Any:
        if ctx.attempt == 1:
            return call_next()
        return await call_next()

    harness.lw.handler("job", retry=SOON)(greet)
    await harness.start_worker()
    job = await harness.lw.submit("job")
    assert await job.wait(60) == "hello"
    assert (await job.get()).attempt == 2


async def test_analysis_that_forgets_to_await_is_a_failure_with_retries(
    harness: WorkerHarness,
) -> None:
    async def look() -> Analysis:
        return Analysis(cost=1, currency="EUR")

    @harness.lw.handler("job", approval=True, retry=SOON)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def forgets(ctx: Context) -> Any:
        return look() if ctx.attempt == 1 else await look()

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await wait_until(
        lambda: harness.one("select status from laneway.jobs_view") == "awaiting_approval"
    )
    attempts = (await submitted.get()).attempts
    assert [one.outcome for one in attempts] == ["failed", "analyzed"]
    error = attempts[0].error
    assert error is not None
    assert "is an await missing?" in error.message
