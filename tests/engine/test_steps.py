"""Durable steps: once per job, whatever ends an attempt, with the result as it will be read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from laneway import Context, SyncContext
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store.database import Database
from laneway.store.statement import Statement
from tests.engine import child_features
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


@dataclass
class Page:
    number: int
    words: tuple[str, ...]


class Order(BaseModel):
    due: date


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_finished_step_is_not_run_again(harness: WorkerHarness, isolation: str) -> None:
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name.upper()

    @harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> list[str]:
        first = await ctx.step("first", work, "a")
        if ctx.attempt == 1:
            raise ValueError("between the steps")
        return [first, await ctx.step("second", work, name="b")]

    @harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> list[str]:
        first = ctx.step("first", work, "a")
        if ctx.attempt == 1:
            raise ValueError("between the steps")
        return [first, ctx.step("second", work, name="b")]

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    assert await job.wait(60) == ["A", "B"]
    assert ran == ["a", "b"]
    rows = harness.rows("select name, attempt, result from laneway.steps order by name")
    assert rows == [("first", 1, "A"), ("second", 2, "B")]
    assert (await job.get()).attempt == 2


@pytest.mark.parametrize("job_type", ["child_steps", "async_child_steps"])
async def test_steps_work_in_child_processes(
    harness: WorkerHarness, tmp_path: Path, job_type: str
) -> None:
    path = tmp_path / "ran"
    await child_features.adopted_by(harness)
    job = await harness.lw.submit(job_type, {"path": str(path)})
    assert await job.wait(60) == ["first", "second"]
    assert path.read_text() == "first\nsecond\n"


async def test_step_may_be_async_and_steps_may_run_together(harness: WorkerHarness) -> None:
    ran: list[int] = []

    async def square(n: int) -> int:
        ran.append(n)
        await asyncio.sleep(0)
        return n * n

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> list[int]:
        found = await asyncio.gather(*(ctx.step(f"n{n}", square, n) for n in range(10)))
        if ctx.attempt == 1:
            raise ValueError("again")
        return found

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    assert await submitted.wait(60) == [n * n for n in range(10)]
    assert sorted(ran) == list(range(10))


@pytest.mark.parametrize("attempt", [1, 2])
async def test_result_has_its_type_at_first_and_afterwards(
    harness: WorkerHarness, attempt: int
) -> None:
    seen: list[Any] = []

    def page() -> Page:
        return Page(3, ("a", "b"))

    def order() -> Order:
        return Order(due=date(2030, 1, 2))

    def several() -> tuple[int, ...]:
        return (1, 2)

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        got = [
            await ctx.step("page", page),
            await ctx.step("order", order),
            await ctx.step("several", several),
            await ctx.step("hinted", lambda: [1, 2], returns=tuple[int, ...]),
            # No hint: plain JSON, in the order and with the numbers PostgreSQL gives back.
            await ctx.step("plain", lambda: {"zz": (1, 2), "a": -0.0}),
        ]
        if ctx.attempt == attempt:
            seen.extend(got)
        else:
            raise ValueError("again")

    await harness.start_worker()
    await (await harness.lw.submit("job")).wait(60)
    assert seen[:4] == [Page(3, ("a", "b")), Order(due=date(2030, 1, 2)), (1, 2), (1, 2)]
    assert list(seen[4].items()) == [("a", 0.0), ("zz", [1, 2])]
    assert str(seen[4]["a"]) == "0.0"


async def test_first_attempt_asks_for_no_steps(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = Database.run

    async def remember(self: Database, statement: Statement[Any]) -> Any:
        asked.append(statement.name)
        return await run(self, statement)

    monkeypatch.setattr(Database, "run", remember)

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        await ctx.step("one", int)
        await ctx.step("two", int)
        if ctx.attempt == 1:
            assert "steps/read_steps" not in asked
            raise ValueError("again")

    await harness.start_worker()
    await (await harness.lw.submit("job")).wait(60)
    assert asked.count("steps/read_steps") == 1
    assert asked.count("steps/save_step") == 2


@pytest.mark.parametrize(
    "fn,returns,rule",
    [
        (lambda: "x" * 101, ..., "step 'one': is at least 103 bytes of JSON; at most 100"),
        (lambda: {"a": {1}}, ..., "step 'one'.a: a set is not a JSON value; return a list"),
        (lambda: {"n": "5"}, dict[str, int], "step 'one'.n: must be a valid integer"),
        (lambda: 1, object(), "step 'one': its type has no JSON form"),
    ],
)
async def test_result_that_cannot_be_kept_fails_the_job_and_is_not_stored(
    make_harness: Callable[..., WorkerHarness], fn: Callable[[], Any], returns: Any, rule: str
) -> None:
    harness = make_harness(max_step_bytes=100)
    more = {} if returns is ... else {"returns": returns}

    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        await ctx.step("one", fn, **more)

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == ("InvalidInput" if "no JSON form" in rule else "InvalidResult")
    assert ended.error.message.startswith(rule)
    assert harness.rows("select 1 from laneway.steps") == []


async def test_size_limit_holds_in_children_too(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    harness = make_harness(max_step_bytes=100)
    await child_features.adopted_by(harness)
    ended = await harness.ended(await harness.lw.submit("child_refused", {"how": "large"}), 60)
    assert ended.error is not None
    assert "step 'big': is at least" in ended.error.message
    again = await harness.ended(await harness.lw.submit("child_refused", {"how": "twice"}), 60)
    assert again.error is not None
    assert "step 'one': ran already in this attempt" in again.error.message


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", 5])
async def test_name_is_checked(harness: WorkerHarness, name: Any) -> None:
    @harness.lw.handler("job", max_retries=0)
    def job(ctx: SyncContext) -> None:
        with pytest.raises(InvalidInput, match="step"):
            ctx.step(name, int)

    await harness.start_worker()
    assert (await harness.ended(await harness.lw.submit("job"))).status == "completed"


async def test_name_serves_once_per_attempt_unless_the_step_failed(
    harness: WorkerHarness,
) -> None:
    tries: list[int] = []

    def shaky() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("flaky")
        return len(tries)

    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> int:
        with pytest.raises(OSError, match="flaky"):
            await ctx.step("shaky", shaky)
        result = await ctx.step("shaky", shaky)
        with pytest.raises(InvalidInput, match="step 'shaky': ran already in this attempt"):
            await ctx.step("shaky", shaky)
        return result

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == 2


async def test_renamed_steps_run_again_and_reordered_ones_do_not(harness: WorkerHarness) -> None:
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> list[str]:
        if ctx.attempt == 1:
            await ctx.step("a", work, "a")
            await ctx.step("b", work, "b")
            raise ValueError("a new version is deployed")
        return [await ctx.step(name, work, name) for name in ("b", "renamed", "a")]

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == ["b", "renamed", "a"]
    assert ran == ["a", "b", "renamed"]
    assert harness.one("select count(*) from laneway.steps") == 3


async def test_result_of_another_type_fails_and_is_not_run_again(harness: WorkerHarness) -> None:
    ran: list[int] = []

    def work() -> dict[str, Any]:
        ran.append(1)
        return {"pages": ["a"]}

    @harness.lw.handler("job", max_retries=1, retry=SOON)
    async def job(ctx: Context) -> None:
        if ctx.attempt == 1:
            await ctx.step("read", work)
            raise ValueError("a new version is deployed")
        await ctx.step("read", work, returns=dict[str, list[int]])

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert ended.error is not None
    assert ended.error.message == "step 'read'.pages[0]: must be a valid integer"
    assert ran == [1]


async def test_plain_handler_takes_no_async_step(harness: WorkerHarness) -> None:
    async def never() -> None:
        raise AssertionError

    @harness.lw.handler("job", max_retries=0)
    def job(ctx: SyncContext) -> None:
        _ = ctx.step("one", never)

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert ended.error is not None
    assert ended.error.message == "step 'one': is async, but its handler is a plain function"


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_step_is_kept_and_then_the_cancelled_job_stops(
    harness: WorkerHarness, isolation: str
) -> None:
    started, let_go = threading.Event(), threading.Event()
    went_on: list[int] = []

    def work() -> int:
        started.set()
        let_go.wait(120)
        return 1

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        await ctx.step("one", asyncio.to_thread, work)
        went_on.append(1)

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        ctx.step("one", work)
        went_on.append(1)

    # The first to hear of the cancellation is the step itself.
    await harness.start_worker_with({"listen": False, "heartbeat_fraction": 0.99})
    job = await harness.lw.submit(f"{isolation}_job")
    await wait_until(started.is_set)
    harness.do("update laneway.lease set cancel_requested_at = clock_timestamp()")
    let_go.set()
    assert (await harness.ended(job)).status == "cancelled"
    assert went_on == []
    assert harness.rows("select name from laneway.steps") == [("one",)]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_superseded_attempt_keeps_no_step(harness: WorkerHarness, isolation: str) -> None:
    started, let_go = threading.Event(), threading.Event()
    ends: list[str] = []

    def work() -> int:
        started.set()
        let_go.wait(120)
        return 1

    @harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        if ctx.attempt > 1:
            return
        try:
            await ctx.step("one", asyncio.to_thread, work)
        except BaseException as error:
            ends.append(type(error).__name__)
            raise

    @harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        if ctx.attempt > 1:
            return
        try:
            ctx.step("one", work)
        except BaseException as error:
            ends.append(type(error).__name__)
            raise

    await harness.start_worker_with({"heartbeat_fraction": 0.99})
    job = await harness.lw.submit(f"{isolation}_job")
    await wait_until(started.is_set)
    harness.lapse(job)
    await wait_until(lambda: harness.status(job) == "completed")
    let_go.set()
    await wait_until(lambda: ends)
    assert ends[0] in ("StaleAttempt", "CancelledError", "Interrupted")
    assert harness.rows("select 1 from laneway.steps") == []


async def test_result_of_a_step_is_not_lost_with_a_connection(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when nothing was stored, nor when only the answer was lost."""
    ran: list[int] = []
    run, failures = Database.run, iter(["before", "after", "before"])

    async def break_down(self: Database, statement: Statement[Any]) -> Any:
        if statement.name != "steps/save_step":
            return await run(self, statement)
        when = next(failures, None)
        if when != "before":
            answer = await run(self, statement)
        if when is not None:
            raise DatabaseUnavailable("connection lost")
        return answer

    monkeypatch.setattr(Database, "run", break_down)

    def work() -> int:
        ran.append(1)
        return len(ran)

    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> int:
        return await ctx.step("one", work)

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == 1
    assert ran == [1]
