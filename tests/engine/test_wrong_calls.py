"""Wrong calls of `ctx` fail their job at once, and the error names the right form."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock, create_autospec

import pytest

from laneway import Context, JobType, Laneway, SyncContext
from laneway.errors import InvalidInput
from laneway.testing import FakeContext
from tests.engine import isolation_handlers
from tests.support.worker_harness import SOON, WorkerHarness

JOB = "mail.job(user=1)"


async def made() -> int:
    return 1


# Each wrong call, and parts of the error of its job. `ctx`, `mail` and `job` are untyped here.
CALLS: dict[str, tuple[Callable[[Any, Any, Any], Any], tuple[str, ...]]] = {
    "sleep without name": (
        lambda ctx, mail, job: ctx.sleep(5),
        ("ctx.sleep: ", "'seconds'", 'write ctx.sleep("name", 60)'),
    ),
    "long sleep": (
        lambda ctx, mail, job: ctx.sleep("a", 1e12),
        ("seconds: must be at most 3162240000 seconds (100 years)", "1000000000000.0"),
    ),
    "step without name": (
        lambda ctx, mail, job: ctx.step(lambda: 1),
        ("ctx.step: ", "'fn'", 'write ctx.step("name", fn, *args)'),
    ),
    "step of a value": (
        lambda ctx, mail, job: ctx.step("a", 1),
        ("step 'a': takes a function, not int", "write ctx.step('a', fn, *args)"),
    ),
    "step of a call": (
        lambda ctx, mail, job: ctx.step("a", made()),
        ("step 'a': takes a function, not coroutine",),
    ),
    "sub-jobs without name": (
        lambda ctx, mail, job: ctx.run_all([mail.job(user=1)]),
        ("ctx.run_all: ", "'jobs'", 'write ctx.run_all("name", ['),
    ),
    "one sub-job": (
        lambda ctx, mail, job: ctx.run_all("a", mail.job(user=1)),
        ("jobs: must be a list of jobs", f"write [{JOB}]"),
    ),
    "sub-job of text": (
        lambda ctx, mail, job: ctx.run_all("a", ["mail"]),
        ("jobs[0]: must be a job", JOB, "'mail'"),
    ),
    "sub-job of a call": (
        lambda ctx, mail, job: ctx.run_all("a", [mail(ctx, user=1)]),
        ("jobs[0]: is a call", JOB),
    ),
    "sub-job of a handler": (
        lambda ctx, mail, job: ctx.run_all("a", [mail]),
        ("jobs[0]: is a handler without its arguments", JOB),
    ),
    "sub-job of a submitted one": (
        lambda ctx, mail, job: ctx.run_all("a", [job]),
        ("jobs[0]: was submitted already", JOB),
    ),
    "long timeout": (
        lambda ctx, mail, job: ctx.wait_event("x", timeout=1e12),
        ("timeout: must be at most 3162240000 seconds",),
    ),
    "key by position": (
        lambda ctx, mail, job: ctx.wait_event("x", "key"),
        ("ctx.wait_event: too many positional arguments", "key="),
    ),
    "unknown argument": (
        lambda ctx, mail, job: ctx.progress(1, of=2),
        ("ctx.progress: got an unexpected keyword argument 'of'",),
    ),
}


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "thread"])
async def test_wrong_call_fails_its_job_at_once(harness: WorkerHarness, is_async: bool) -> None:
    lw = harness.lw

    @lw.handler("mail")
    async def mail(ctx: Context, user: int) -> None: ...

    given = await mail.submit(user=1)

    @lw.handler("async", retry=SOON)
    async def call(ctx: Context, name: str) -> None:
        await CALLS[name][0](ctx, mail, given)

    @lw.handler("thread", retry=SOON)
    def call_blocking(ctx: SyncContext, name: str) -> None:
        CALLS[name][0](ctx, mail, given)

    await harness.start_worker()
    handler = call if is_async else call_blocking
    jobs = {name: await handler.submit(name=name) for name in CALLS}
    for name, job in jobs.items():
        found = await harness.ended(job)
        assert found.error is not None, name
        assert (found.status, found.attempt, found.error.type) == ("failed", 1, "InvalidInput")
        for part in CALLS[name][1]:
            assert part in found.error.message


async def test_error_of_the_function_of_a_step_stays_a_type_error(harness: WorkerHarness) -> None:
    def wrong(_: int) -> int:
        raise TypeError("own")

    @harness.lw.handler("steps", max_retries=0)
    def steps(ctx: SyncContext) -> None:
        ctx.step("a", wrong, 1)

    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("steps"))
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("TypeError", "own")


WRONG_IN_FAKES: list[Callable[[Any], Awaitable[object]]] = [
    lambda ctx: ctx.sleep(5),
    lambda ctx: ctx.wait_event("x", timeout="1h"),
    lambda ctx: ctx.run_all("a", 5),
]


@pytest.mark.parametrize("call", WRONG_IN_FAKES)
async def test_fake_context_refuses_the_same_calls(
    call: Callable[[Any], Awaitable[object]],
) -> None:
    with pytest.raises(InvalidInput):
        await call(FakeContext(events={"x": 1}))


# Calls that an async handler writes without `await`, and the form that the error names.
NOT_AWAITED: dict[str, tuple[Callable[[Any], object], str]] = {
    "sleep": (lambda ctx: ctx.sleep("a", 1), 'ctx.sleep("name", 60)'),
    "wait_event": (lambda ctx: ctx.wait_event("x"), 'ctx.wait_event("event", key='),
    "run_all": (lambda ctx: ctx.run_all("a", []), 'ctx.run_all("name", ['),
    "step": (lambda ctx: ctx.step("a", dict), 'ctx.step("name", fn, *args)'),
    "save": (lambda ctx: ctx.save(1), "ctx.save(state)"),
    "retry": (lambda ctx: ctx.retry(dict), "ctx.retry(fn, *args)"),
    "progress": (lambda ctx: ctx.progress(1), "ctx.progress(done"),
}


def calls_without_await(lw: Laneway) -> JobType[..., Any, Any]:
    @lw.handler("forgets", retry=SOON)
    async def forgets(ctx: Context, name: str) -> str:
        kept = NOT_AWAITED[name][0](ctx)
        return "done" if kept else ""

    return forgets


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_call_without_await_fails_its_job_at_once(harness: WorkerHarness) -> None:
    forgets = calls_without_await(harness.lw)
    await harness.start_worker()
    jobs = {name: await forgets.submit(name=name) for name in NOT_AWAITED}
    for name, job in jobs.items():
        found = await harness.ended(job)
        assert found.error is not None, name
        assert (found.status, found.attempt, found.error.type) == ("failed", 1, "InvalidInput")
        assert found.error.message.startswith(
            f"ctx.{name}: was called without await: write await {NOT_AWAITED[name][1]}"
        )


async def test_call_without_await_in_a_child_process_fails_its_job(harness: WorkerHarness) -> None:
    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_forgets"])
    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("process_forgets"))
    assert found.error is not None
    assert (found.status, found.attempt, found.error.type) == ("failed", 1, "InvalidInput")
    assert "write await ctx.sleep(" in found.error.message


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_call_without_await_is_refused_at_the_next_call(harness: WorkerHarness) -> None:
    ran: list[int] = []

    async def run() -> None:
        ran.append(1)

    @harness.lw.handler("forgets", retry=SOON)
    async def forgets(ctx: Context) -> None:
        ctx.sleep("a", 60)  # type: ignore[unused-coroutine]
        await ctx.step("b", run)

    await harness.start_worker()
    found = await harness.ended(await forgets.submit())
    assert found.error is not None
    assert found.error.message.startswith("ctx.sleep: was called without await")
    assert ran == []


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_fake_context_refuses_a_call_without_await(harness: WorkerHarness) -> None:
    forgets = calls_without_await(harness.lw)
    for name in NOT_AWAITED:
        with pytest.raises(InvalidInput, match=f"ctx.{name}: was called without await"):
            await forgets(FakeContext(events={"x": 1}), name=name)


# Uses of a call as if it were its result.
USES: dict[str, Callable[[Any], Any]] = {
    "key": lambda call: call["by"],
    "attribute": lambda call: call.by,
    "loop": list,
    "unpacking": lambda call: (lambda first, *_: first)(*call),
    "length": len,
    "membership": lambda call: "by" in call,
    "sum": lambda call: call + 1,
    "sum from the right": lambda call: 1 + call,
    "order": lambda call: call < 1,
    "return": lambda call: call,
}


def uses_without_await(lw: Laneway) -> JobType[..., Any, Any]:
    @lw.handler("uses", retry=SOON)
    async def uses(ctx: Context, how: str) -> Any:
        return USES[how](ctx.run_all("pages", []))

    return uses


RUN_ALL = r"ctx.run_all: was called without await: write await ctx.run_all\("


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_use_of_a_call_without_await_fails_its_job_at_once(harness: WorkerHarness) -> None:
    uses = uses_without_await(harness.lw)
    await harness.start_worker()
    jobs = {how: await uses.submit(how=how) for how in USES}
    for how, job in jobs.items():
        found = await harness.ended(job)
        assert found.error is not None, how
        assert (found.status, found.attempt, found.error.type) == ("failed", 1, "InvalidInput"), how
        assert re.match(RUN_ALL, found.error.message), how


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("how", USES)
async def test_fake_context_refuses_use_of_a_call_without_await(how: str) -> None:
    uses = uses_without_await(Laneway("postgresql://nowhere"))
    with pytest.raises(InvalidInput, match=RUN_ALL):
        await uses(FakeContext(), how=how)


async def test_call_may_be_awaited_later_or_left_to_a_task(harness: WorkerHarness) -> None:
    left = []

    @harness.lw.handler("tasks", retry=SOON)
    async def tasks(ctx: Context) -> list[object]:
        later = ctx.step("a", int, 1)
        task = asyncio.create_task(ctx.step("b", int, 2))
        both = await asyncio.gather(later, task)
        cancelled = asyncio.create_task(ctx.progress(1))
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ctx.step("c", asyncio.sleep, 60), 0.01)
        ctx.progress(1).close()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            third = group.create_task(ctx.step("d", int, 3))
        # Not started when the handler returns.
        left.append(asyncio.create_task(ctx.progress(1)))
        return [*both, third.result()]

    await harness.start_worker()
    found = await harness.ended(await tasks.submit())
    assert (found.error, found.result) == (None, [1, 2, 3])
    await asyncio.wait(left)


def test_async_calls_are_seen_as_coroutines() -> None:
    """Task groups of other libraries start them."""
    call = FakeContext().progress(1)
    assert inspect.iscoroutine(call)
    assert inspect.getcoroutinestate(call) == inspect.CORO_CREATED
    assert bool(call)
    assert not isinstance(call, Iterable)
    assert not hasattr(call, "unknown")
    call.close()


def test_async_calls_are_seen_as_coroutine_functions() -> None:
    """Mocks of a context await the same calls."""
    ctx = create_autospec(Context)
    assert isinstance(ctx.sleep, AsyncMock)
    assert inspect.signature(Context.sleep).parameters.keys() == {"self", "name", "seconds"}


async def test_waits_of_a_handler_take_timedeltas(harness: WorkerHarness) -> None:
    @harness.lw.handler("waits")
    async def waits(ctx: Context) -> str:
        await ctx.sleep("nap", timedelta(milliseconds=10))
        try:
            await ctx.wait_event("never", timeout=timedelta(milliseconds=10))
        except TimeoutError as error:
            return str(error)
        return ""

    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("waits"))
    assert found.result == "event 'never' did not come within 0.01 s"


async def test_async_handler_may_not_block_its_worker(harness: WorkerHarness) -> None:
    lw = harness.lw
    other = await lw.submit("never")

    @lw.handler("waits", retry=SOON)
    async def waits(ctx: Context) -> None:
        lw.sync.wait(other.id, 60)

    @lw.handler("watches", retry=SOON)
    async def watches(ctx: Context) -> None:
        await asyncio.create_task(list_types())

    async def list_types() -> None:
        lw.sync.jobs.list()

    @lw.handler("nests", retry=SOON)
    async def nests(ctx: Context) -> None:
        with lw.sync.flow("nightly") as flow:
            flow.add("page")

    @lw.handler("thread")
    def thread(ctx: SyncContext) -> str:
        return str(lw.sync.get(other.id).id)

    await harness.start_worker()
    messages = []
    for name in ("waits", "watches", "nests"):
        found = await harness.ended(await lw.submit(name))
        assert found.error is not None
        assert (found.status, found.attempt, found.error.type) == ("failed", 1, "InvalidInput")
        messages.append(found.error.message)
    assert messages[0].startswith("lw.sync: blocks the event loop of an async def handler: await")
    assert "await lw.wait(…)" in messages[0]
    assert "the same verb without .sync" in messages[1]
    assert messages[2].endswith("of an async def handler: write `async with lw.flow(…)`")
    assert (await harness.ended(await lw.submit("thread"))).result == str(other.id)


async def test_plain_handler_may_block_an_event_loop_that_it_runs(harness: WorkerHarness) -> None:
    lw = harness.lw
    other = await lw.submit("never")

    async def read() -> str:
        return str(lw.sync.get(other.id).id)

    @lw.handler("plain", retry=SOON)
    def plain(ctx: SyncContext) -> str:
        return asyncio.run(read())

    await harness.start_worker()
    found = await harness.ended(await lw.submit("plain"))
    assert (found.error, found.result) == (None, str(other.id))


async def test_times_that_have_passed_are_no_wrong_calls(harness: WorkerHarness) -> None:
    """A handler that waits until a time runs again after it."""

    @harness.lw.handler("until", retry=SOON)
    async def until(ctx: Context, at: float) -> str:
        await ctx.sleep("until", at - time.time())
        try:
            await ctx.wait_event("never", timeout=at - time.time())
        except TimeoutError as error:
            return str(error)
        return ""

    await harness.start_worker()
    found = await harness.ended(await harness.lw.submit("until", {"at": time.time() + 0.5}))
    assert (found.error, found.result) == (None, "event 'never' did not come within 0 s")
