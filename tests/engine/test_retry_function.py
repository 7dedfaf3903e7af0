"""A function as the retry policy of a handler."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from laneway import Context, Laneway, Retry, SyncContext
from laneway.engine.run import attempt, retry_decision
from laneway.errors import ConfigError
from tests.engine import context_handlers
from tests.support.worker_harness import WorkerHarness, wait_until

ISOLATIONS = ["async", "thread", "process"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_retry_function_decides_whether_and_when_to_retry(
    harness: WorkerHarness, isolation: str
) -> None:
    harness.lw.handlers.add(context_handlers.lw.handlers[f"{isolation}_act"])
    await harness.start_worker()
    fatal = await harness.lw.submit(f"{isolation}_act", {"how": "fatal"})
    again = await harness.lw.submit(f"{isolation}_act", {"how": "value"}, max_retries=2)
    ended = await harness.ended(fatal)
    assert (ended.status, ended.attempt, ended.retries) == ("failed", 1, 0)
    ended = await harness.ended(again)
    assert (ended.status, ended.attempt) == ("failed", 3)


async def test_broken_retry_function_leaves_the_decision_to_the_default_policy(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    job_types = [f"{isolation}_act" for isolation in ISOLATIONS]
    for job_type in job_types:
        harness.lw.handlers.add(context_handlers.lw.handlers[job_type])
    await harness.start_worker()
    jobs = [await harness.lw.submit(each, {"how": "key"}, max_retries=1) for each in job_types]
    for job in jobs:
        ended = await harness.ended(job)
        assert (ended.status, ended.attempt) == ("failed", 2)
        assert ended.error is not None
        assert ended.error.type == "KeyError"
    # A child process has a separate log.
    for job_type in job_types[:2]:
        words = f"handler '{job_type}': its retry function raised RuntimeError: cannot decide"
        assert words in caplog.text


@pytest.mark.parametrize(
    "answer,delay_s",
    [
        (timedelta(hours=2), 7200),
        (3600, 3600),
        (1e12, 366 * 86400),
        (10**400, 366 * 86400),
        (False, None),
        (None, None),
    ],
)
async def test_answer_of_a_retry_function_is_a_bounded_delay_or_no_retry(
    harness: WorkerHarness, answer: Any, delay_s: float | None
) -> None:
    calls: list[tuple[int, str]] = []

    def decide(n: int, error: BaseException) -> Any:
        calls.append((n, str(error)))
        return answer

    @harness.lw.handler("job", retry=decide)
    async def job(ctx: Context) -> None:
        raise ValueError("no luck")

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await wait_until(lambda: harness.one("select count(*) from laneway.lease") == 0 and calls)
    assert calls == [(1, "no luck")]
    if delay_s is None:
        assert (await harness.ended(submitted)).attempt == 1
    else:
        await wait_until(lambda: harness.rows("select 1 from laneway.delayed"))
        left = harness.one(
            "select extract(epoch from run_at - clock_timestamp()) from laneway.delayed"
        )
        assert delay_s - 120 < left <= delay_s


def answering(answer: Any) -> Callable[[int, BaseException], Any]:
    return lambda n, error: answer


async def test_answer_that_is_not_a_delay_is_replaced_by_the_policy(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(ctx: Context) -> None:
        raise ValueError("no luck")

    answers = {"yes": True, "past": -1, "text": "soon", "nan": float("nan"), "inf": float("inf")}
    for name, answer in answers.items():
        harness.lw.handler(name, retry=answering(answer))(fail)
    await harness.start_worker()
    jobs = {name: await harness.lw.submit(name, max_retries=1) for name in answers}
    for name, job in jobs.items():
        ended = await harness.ended(job)
        assert (ended.status, ended.attempt) == ("failed", 2)
        returned = type(answers[name]).__name__
        assert f"handler '{name}': its retry function returned {returned}" in caplog.text


@pytest.mark.parametrize("how", ["raises", "late", "hangs"])
async def test_event_loop_goes_on_while_a_retry_function_thinks(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(retry_decision, "LONGEST_S", 60.0)
    asked, may_answer, may_end = threading.Event(), threading.Event(), asyncio.Event()

    def decide(n: int, error: BaseException) -> None:
        asked.set()
        may_answer.wait(60)

    @harness.lw.handler("job", retry=decide, timeout=None if how == "raises" else 0.05)
    async def job(ctx: Context) -> None:
        if how == "raises":
            raise ValueError("no luck")
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            if how == "late":
                raise
            await may_end.wait()

    @harness.lw.handler("other")
    async def other(ctx: Context) -> str:
        return "done"

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await wait_until(asked.is_set)
    assert await (await harness.lw.submit("other")).wait(30) == "done"
    assert not may_answer.is_set()
    assert (await submitted.get()).status == "running"
    may_answer.set()
    ended = await harness.ended(submitted)
    assert (ended.status, ended.attempt) == ("failed", 1)
    may_end.set()


async def test_retry_function_without_an_answer_leaves_it_to_the_policy(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry_decision, "LONGEST_S", 0.05)
    may_answer = threading.Event()

    def decide(n: int, error: BaseException) -> None:
        may_answer.wait(60)

    @harness.lw.handler("job", retry=decide)
    async def job(ctx: Context) -> None:
        raise ValueError("no luck")

    @harness.lw.handler("plain_job", retry=decide)
    def plain_job(ctx: SyncContext) -> None:
        raise ValueError("no luck")

    await harness.start_worker()
    names = ("job", "plain_job")
    jobs = [await harness.lw.submit(name, max_retries=1) for name in names]
    all_ended = [await harness.ended(job) for job in jobs]
    may_answer.set()
    assert [(ended.status, ended.attempt) for ended in all_ended] == [("failed", 2)] * 2
    for name in names:
        words = f"handler '{name}': its retry function gave no answer within 0.05 s"
        assert words in caplog.text


async def test_time_of_a_retry_function_does_not_count_as_the_handlers(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1000.0]
    monkeypatch.setattr(attempt, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def decide(n: int, error: BaseException) -> None:
        now[0] += 100

    @harness.lw.handler("job", retry=decide)
    async def job(ctx: Context) -> None:
        raise ValueError("no luck")

    await harness.start_worker()
    await harness.ended(await harness.lw.submit("job"))
    await wait_until(lambda: "the job has failed" in caplog.text)
    assert [vars(one)["duration"] for one in caplog.records if "duration" in vars(one)] == [0.0]


async def test_explicit_delay_of_a_handler_beats_its_retry_function(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", retry=lambda n, error: None)
    async def job(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise Retry("busy", after=0.01)
        return ctx.attempt

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == 2


async def test_retry_function_sees_a_timeout(harness: WorkerHarness) -> None:
    seen: list[BaseException] = []

    def decide(n: int, error: BaseException) -> None:
        seen.append(error)

    @harness.lw.handler("job", retry=decide, timeout=0.05)
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert (ended.status, ended.attempt) == ("failed", 1)
    assert [type(one) for one in seen] == [TimeoutError]


async def test_spent_budget_is_not_extended_by_a_retry_function(harness: WorkerHarness) -> None:
    calls: list[int] = []

    def decide(n: int, error: BaseException) -> float:
        calls.append(n)
        return 0.01

    @harness.lw.handler("job", max_retries=1, retry=decide)
    async def job(ctx: Context) -> None:
        raise ValueError("no luck")

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert (ended.attempt, calls) == (2, [1])


def test_async_retry_function_is_refused() -> None:
    lw = Laneway("postgresql://unused@nowhere/nothing")

    async def decide(n: int, error: BaseException) -> float:
        return 1.0

    with pytest.raises(ConfigError, match="retry: must be a RetryPolicy or a plain function"):

        @lw.handler("job", retry=decide)  # type: ignore[arg-type]
        async def job(ctx: Context) -> None: ...
