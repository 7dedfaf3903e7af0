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
from tests.engine import held
from tests.engine.workshop import SOON, Workshop, until


@dataclass
class Page:
    number: int
    words: tuple[str, ...]


class Order(BaseModel):
    due: date


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_a_finished_step_is_not_run_again(shop: Workshop, isolation: str) -> None:
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name.upper()

    @shop.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> list[str]:
        first = await ctx.step("first", work, "a")
        if ctx.attempt == 1:
            raise ValueError("between the steps")
        return [first, await ctx.step("second", work, name="b")]

    @shop.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> list[str]:
        first = ctx.step("first", work, "a")
        if ctx.attempt == 1:
            raise ValueError("between the steps")
        return [first, ctx.step("second", work, name="b")]

    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_job")
    assert await job.wait(60) == ["A", "B"]
    assert ran == ["a", "b"]
    rows = shop.rows("select name, attempt, result from laneway.steps order by name")
    assert rows == [("first", 1, "A"), ("second", 2, "B")]
    assert (await job.get()).attempt == 2


@pytest.mark.parametrize("job_type", ["child_steps", "async_child_steps"])
async def test_steps_work_in_child_processes(shop: Workshop, tmp_path: Path, job_type: str) -> None:
    path = tmp_path / "ran"
    await held.adopted_by(shop)
    job = await shop.lw.submit(job_type, {"path": str(path)})
    assert await job.wait(60) == ["first", "second"]
    assert path.read_text() == "first\nsecond\n"


async def test_a_step_may_be_async_and_steps_may_run_together(shop: Workshop) -> None:
    ran: list[int] = []

    async def square(n: int) -> int:
        ran.append(n)
        await asyncio.sleep(0)
        return n * n

    @shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> list[int]:
        found = await asyncio.gather(*(ctx.step(f"n{n}", square, n) for n in range(10)))
        if ctx.attempt == 1:
            raise ValueError("again")
        return found

    await shop.hire()
    submitted = await shop.lw.submit("job")
    assert await submitted.wait(60) == [n * n for n in range(10)]
    assert sorted(ran) == list(range(10))


@pytest.mark.parametrize("attempt", [1, 2])
async def test_a_result_has_its_type_at_first_and_afterwards(shop: Workshop, attempt: int) -> None:
    seen: list[Any] = []

    def page() -> Page:
        return Page(3, ("a", "b"))

    def order() -> Order:
        return Order(due=date(2030, 1, 2))

    def several() -> tuple[int, ...]:
        return (1, 2)

    @shop.lw.handler("job", retry=SOON)
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

    await shop.hire()
    await (await shop.lw.submit("job")).wait(60)
    assert seen[:4] == [Page(3, ("a", "b")), Order(due=date(2030, 1, 2)), (1, 2), (1, 2)]
    assert list(seen[4].items()) == [("a", 0.0), ("zz", [1, 2])]
    assert str(seen[4]["a"]) == "0.0"


async def test_a_first_attempt_asks_for_no_steps(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = Database.run

    async def remember(self: Database, statement: Statement[Any]) -> Any:
        asked.append(statement.name)
        return await run(self, statement)

    monkeypatch.setattr(Database, "run", remember)

    @shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        await ctx.step("one", int)
        await ctx.step("two", int)
        if ctx.attempt == 1:
            assert "steps/read_steps" not in asked
            raise ValueError("again")

    await shop.hire()
    await (await shop.lw.submit("job")).wait(60)
    assert asked.count("steps/read_steps") == 1
    assert asked.count("steps/save_step") == 2


@pytest.mark.parametrize(
    "fn,returns,rule",
    [
        (lambda: "x" * 101, ..., "step 'one': is at least 103 bytes of JSON; at most 100"),
        (lambda: {"a": {1}}, ..., "step 'one'.a: a set is not a JSON value; send a list"),
        (lambda: {"n": "5"}, dict[str, int], "step 'one'.n: must be a valid integer"),
        (lambda: 1, object(), "step 'one': its type has no JSON form"),
    ],
)
async def test_a_result_that_cannot_be_kept_fails_the_job_and_is_not_stored(
    workshop: Callable[..., Workshop], fn: Callable[[], Any], returns: Any, rule: str
) -> None:
    shop = workshop(max_step_bytes=100)
    more = {} if returns is ... else {"returns": returns}

    @shop.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        await ctx.step("one", fn, **more)

    await shop.hire()
    ended = await shop.ended(await shop.lw.submit("job"))
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == "InvalidInput"
    assert ended.error.message.startswith(rule)
    assert shop.rows("select 1 from laneway.steps") == []


async def test_the_size_limit_holds_in_children_too(workshop: Callable[..., Workshop]) -> None:
    shop = workshop(max_step_bytes=100)
    await held.adopted_by(shop)
    ended = await shop.ended(await shop.lw.submit("child_refused", {"how": "large"}), 60)
    assert ended.error is not None
    assert "step 'big': is at least" in ended.error.message
    again = await shop.ended(await shop.lw.submit("child_refused", {"how": "twice"}), 60)
    assert again.error is not None
    assert "step 'one': ran already in this attempt" in again.error.message


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", 5])
async def test_a_name_is_checked(shop: Workshop, name: Any) -> None:
    @shop.lw.handler("job", max_retries=0)
    def job(ctx: SyncContext) -> None:
        with pytest.raises(InvalidInput, match="step"):
            ctx.step(name, int)

    await shop.hire()
    assert (await shop.ended(await shop.lw.submit("job"))).status == "completed"


async def test_a_name_serves_once_per_attempt_unless_the_step_failed(shop: Workshop) -> None:
    tries: list[int] = []

    def shaky() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("flaky")
        return len(tries)

    @shop.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> int:
        with pytest.raises(OSError, match="flaky"):
            await ctx.step("shaky", shaky)
        result = await ctx.step("shaky", shaky)
        with pytest.raises(InvalidInput, match="step 'shaky': ran already in this attempt"):
            await ctx.step("shaky", shaky)
        return result

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == 2


async def test_renamed_steps_run_again_and_reordered_ones_do_not(shop: Workshop) -> None:
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    @shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> list[str]:
        if ctx.attempt == 1:
            await ctx.step("a", work, "a")
            await ctx.step("b", work, "b")
            raise ValueError("a new version is deployed")
        return [await ctx.step(name, work, name) for name in ("b", "renamed", "a")]

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == ["b", "renamed", "a"]
    assert ran == ["a", "b", "renamed"]
    assert shop.one("select count(*) from laneway.steps") == 3


async def test_a_result_of_another_type_fails_and_is_not_run_again(shop: Workshop) -> None:
    ran: list[int] = []

    def work() -> dict[str, Any]:
        ran.append(1)
        return {"pages": ["a"]}

    @shop.lw.handler("job", max_retries=1, retry=SOON)
    async def job(ctx: Context) -> None:
        if ctx.attempt == 1:
            await ctx.step("read", work)
            raise ValueError("a new version is deployed")
        await ctx.step("read", work, returns=dict[str, list[int]])

    await shop.hire()
    ended = await shop.ended(await shop.lw.submit("job"))
    assert ended.error is not None
    assert ended.error.message == "step 'read'.pages[0]: must be a valid integer"
    assert ran == [1]


async def test_a_plain_handler_takes_no_async_step(shop: Workshop) -> None:
    async def never() -> None:
        raise AssertionError

    @shop.lw.handler("job", max_retries=0)
    def job(ctx: SyncContext) -> None:
        _ = ctx.step("one", never)

    await shop.hire()
    ended = await shop.ended(await shop.lw.submit("job"))
    assert ended.error is not None
    assert ended.error.message == "step 'one': is async, but its handler is a plain function"


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_a_step_is_kept_and_then_the_cancelled_job_stops(
    shop: Workshop, isolation: str
) -> None:
    started, let_go = threading.Event(), threading.Event()
    went_on: list[int] = []

    def work() -> int:
        started.set()
        let_go.wait(120)
        return 1

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        await ctx.step("one", asyncio.to_thread, work)
        went_on.append(1)

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        ctx.step("one", work)
        went_on.append(1)

    # The first to hear of the cancellation is the step itself.
    await shop.hire_unlike({"listen": False, "heartbeat_fraction": 0.99})
    job = await shop.lw.submit(f"{isolation}_job")
    await until(started.is_set)
    shop.do("update laneway.lease set cancel_requested_at = clock_timestamp()")
    let_go.set()
    assert (await shop.ended(job)).status == "cancelled"
    assert went_on == []
    assert shop.rows("select name from laneway.steps") == [("one",)]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_a_superseded_attempt_keeps_no_step(shop: Workshop, isolation: str) -> None:
    started, let_go = threading.Event(), threading.Event()
    ends: list[str] = []

    def work() -> int:
        started.set()
        let_go.wait(120)
        return 1

    @shop.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        if ctx.attempt > 1:
            return
        try:
            await ctx.step("one", asyncio.to_thread, work)
        except BaseException as error:
            ends.append(type(error).__name__)
            raise

    @shop.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        if ctx.attempt > 1:
            return
        try:
            ctx.step("one", work)
        except BaseException as error:
            ends.append(type(error).__name__)
            raise

    await shop.hire_unlike({"heartbeat_fraction": 0.99})
    job = await shop.lw.submit(f"{isolation}_job")
    await until(started.is_set)
    shop.lapse(job)
    await until(lambda: shop.status(job) == "completed")
    let_go.set()
    await until(lambda: ends)
    assert ends[0] in ("StaleAttempt", "CancelledError", "Interrupted")
    assert shop.rows("select 1 from laneway.steps") == []


async def test_result_of_a_step_is_not_lost_with_a_connection(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
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

    @shop.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> int:
        return await ctx.step("one", work)

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == 1
    assert ran == [1]
