"""Outcomes of an attempt: each leads to a state, whatever the handler does or returns."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator

from laneway import Cancel, Context, Retry, RetryPolicy, Snooze, SyncContext
from laneway.errors import InvalidInput, StaleAttempt
from tests.engine import isolation_handlers
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

ISOLATIONS = ["async", "thread", "process"]


class Mute(Exception):
    """Cannot even be put into words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def act(how: str, attempt: int) -> Any:
    match how:
        case "error":
            raise ValueError("a \x00 NUL and a \ud800 surrogate")
        case "exit":
            sys.exit(3)
        case "mute":
            raise Mute
        case "retry":
            raise Retry("busy", after=0.05)
        case "snooze" if attempt == 1:
            raise Snooze(0.05)
        case "cancel":
            raise Cancel("nothing to do")
        case "odd_snooze":
            raise Snooze("a while")  # type: ignore[arg-type]
        case "odd_cancel":
            raise Cancel(None)  # type: ignore[arg-type]
        case "stale":
            raise StaleAttempt("of some other job")
        case "interrupt":
            raise KeyboardInterrupt
    return attempt


def handlers(harness: WorkerHarness, retry: RetryPolicy = SOON) -> None:
    @harness.lw.handler("async_add")
    async def async_add(ctx: Context, a: int, b: int = 1) -> int:
        return a + b

    @harness.lw.handler("thread_add")
    def thread_add(ctx: SyncContext, a: int, b: int = 1) -> int:
        return a + b

    @harness.lw.handler("async_raise", retry=retry)
    async def async_raise(ctx: Context, how: str) -> Any:
        await asyncio.sleep(0)
        return act(how, ctx.attempt)

    @harness.lw.handler("thread_raise", retry=retry)
    def thread_raise(ctx: SyncContext, how: str) -> Any:
        return act(how, ctx.attempt)

    for job_type in ("process_add", "process_raise"):
        harness.lw.handlers.add(isolation_handlers.lw.handlers[job_type])


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_return_value_of_a_handler_is_the_result(
    either_harness: WorkerHarness, isolation: str
) -> None:
    handlers(either_harness)
    await either_harness.start_worker()
    job = await either_harness.lw.submit(f"{isolation}_add", {"a": 2, "b": 3})
    assert await job.wait(60) == 5
    ended = await job.get()
    assert (ended.status, ended.attempt, ended.retries, ended.error) == ("completed", 1, 0, None)
    assert ended.started_at is not None
    assert ended.finished_at is not None
    assert ended.claimed_at is not None
    assert ended.claimed_at <= ended.finished_at


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_exception_is_retried_until_the_budget_is_spent(
    harness: WorkerHarness, isolation: str
) -> None:
    """NUL and lone surrogates, which PostgreSQL refuses, are in the text all the while."""
    handlers(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_raise", {"how": "error"}, max_retries=2)
    ended = await harness.ended(job)
    assert (ended.status, ended.attempt, ended.retries) == ("failed", 3, 2)
    assert [a.outcome for a in ended.attempts] == ["failed"] * 3
    for attempt in ended.attempts:
        assert attempt.error is not None
        assert attempt.error.type == "ValueError"
        assert "NUL" in attempt.error.message
        assert "\x00" not in attempt.error.message
        assert "raise ValueError" in (attempt.error.traceback or "")
    assert ended.error == ended.attempts[-1].error


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_handler_that_exits_ends_its_job_and_not_the_worker(
    harness: WorkerHarness, isolation: str
) -> None:
    handlers(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_raise", {"how": "exit"}, max_retries=0)
    ended = await harness.ended(job)
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == "SystemExit"
    after = await harness.lw.submit(f"{isolation}_add", {"a": 1})
    assert await after.wait(60) == 2


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_no_exception_is_too_odd_to_end_its_job(
    harness: WorkerHarness, isolation: str
) -> None:
    handlers(harness)
    worker = await harness.start_worker()
    for how in ("mute", "odd_snooze", "odd_cancel", "stale", "interrupt"):
        job = await harness.lw.submit(f"{isolation}_raise", {"how": how}, max_retries=0)
        ended = await harness.ended(job)
        assert ended.status == "failed", how
        assert ended.error is not None, how
    await wait_until(lambda: worker.capacity.in_use == 0)
    await wait_until(harness.holds_nothing)


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_retry_asks_for_a_charged_attempt_after_its_own_delay(
    harness: WorkerHarness, isolation: str
) -> None:
    handlers(harness, retry=RetryPolicy(base=600, cap=600))
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_raise", {"how": "retry"}, max_retries=1)
    ended = await harness.ended(job)
    assert (ended.status, ended.attempt, ended.retries) == ("failed", 2, 1)
    assert ended.error is not None
    assert (ended.error.type, ended.error.message) == ("Retry", "busy")


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_snooze_comes_back_without_charge(harness: WorkerHarness, isolation: str) -> None:
    handlers(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_raise", {"how": "snooze"}, max_retries=0)
    assert await job.wait(60) == 2
    ended = await job.get()
    assert (ended.attempt, ended.retries) == (2, 0)
    assert [a.outcome for a in ended.attempts] == ["snoozed", "completed"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_cancel_ends_the_job_with_its_reason(harness: WorkerHarness, isolation: str) -> None:
    handlers(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_raise", {"how": "cancel"})
    ended = await harness.ended(job)
    assert (ended.status, ended.attempt) == ("cancelled", 1)
    assert harness.one("select cancel_reason from laneway.outcome") == "nothing to do"


async def test_retry_waits_for_the_backoff_of_its_type(harness: WorkerHarness) -> None:
    starts: list[float] = []

    @harness.lw.handler("job", retry=RetryPolicy(base=0.3, cap=0.6, jitter=0))
    async def job(ctx: Context) -> None:
        starts.append(time.monotonic())
        raise ValueError

    await harness.start_worker()
    await harness.ended(await harness.lw.submit("job", max_retries=2))
    assert starts[1] - starts[0] >= 0.3
    assert starts[2] - starts[1] >= 0.6


# -- timeouts ----------------------------------------------------------------------------------


async def test_async_handler_over_its_timeout_fails_and_is_retried(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("job", timeout=0.1, retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return "in time"

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    assert await submitted.wait(60) == "in time"
    first = (await submitted.get()).attempts[0]
    assert first.error is not None
    assert (first.outcome, first.error.type) == ("failed", "Timeout")


async def test_process_over_its_timeout_is_killed_and_fails(harness: WorkerHarness) -> None:
    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_late"])
    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("process_late", max_retries=0))
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == "Timeout"


async def test_thread_over_its_timeout_fails_while_its_room_stays_taken(
    harness: WorkerHarness,
) -> None:
    let_go = threading.Event()

    @harness.lw.handler("job", timeout=0.1)
    def job(ctx: SyncContext) -> str:
        let_go.wait(120)
        ctx.save("too late")
        return "ignored"

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job", max_retries=0)
    ended = await harness.ended(submitted)
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("failed", "Timeout")
    assert worker.capacity.in_use == 1
    let_go.set()
    await wait_until(lambda: worker.capacity.in_use == 0)
    assert (await submitted.get()).checkpoint is None


async def test_thread_that_timed_out_ends_at_its_next_call(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", timeout=0.1)
    def job(ctx: SyncContext) -> None:
        while True:
            try:
                ctx.progress(1)
            except Exception:  # noqa: S112 -- what stops a handler must pass this
                continue

    worker = await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job", max_retries=0))
    assert ended.error is not None
    assert ended.error.type == "Timeout"
    await wait_until(lambda: worker.capacity.in_use == 0)


# -- payloads written behind our back ------------------------------------------------------------

HOSTILE = {
    "digits": '{"a": 1e5000}',
    "nesting": '{"a": ' + "[" * 5000 + "]" * 5000 + "}",
    "no object": "[1, 2]",
    "null": "null",
    "text": '"a"',
    "no argument": "{}",
    "unknown argument": '{"a": 1, "zzz": 2}',
    "wrong type": '{"a": "seven"}',
}


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_hostile_payload_fails_its_own_job_only_and_at_once(
    harness: WorkerHarness, isolation: str
) -> None:
    handlers(harness)
    bad, good = {}, []
    for name, payload in HOSTILE.items():
        good.append(harness.insert(f"{isolation}_add", '{"a": 1}'))
        bad[name] = harness.insert(f"{isolation}_add", payload)
    await harness.start_worker()
    await wait_until(
        lambda: harness.one("select count(*) from laneway.outcome") == 2 * len(HOSTILE)
    )
    assert {harness.status(job) for job in good} == {"completed"}
    for name, job in bad.items():
        status, attempt, kind, message = harness.one(
            "select status, attempt, error ->> 'type', error ->> 'message'"
            " from laneway.jobs_view where id = %s",
            job,
        )
        assert (status, attempt, kind) == ("failed", 1, "InvalidInput"), name
        assert message, name
    assert "a" in harness.one(
        "select error ->> 'message' from laneway.jobs_view where id = %s", bad["wrong type"]
    )
    assert harness.holds_nothing()


async def test_wrong_arguments_are_refused_with_path_and_rule(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context, pages: list[dict[str, int]]) -> None: ...

    job_id = harness.insert("job", '{"pages": [{"a": 1}, {"a": "x"}]}')
    await harness.start_worker()
    await wait_until(lambda: harness.status(job_id) == "failed")
    message = harness.one("select error ->> 'message' from laneway.jobs_view where id = %s", job_id)
    assert "pages" in message
    assert "1" in message
    assert "integer" in message
    with pytest.raises(InvalidInput, match="pages"):
        await harness.lw.submit("job", {"pages": [{"a": 1}, {"a": "x"}]})


def _break(value: object) -> object:
    raise KeyError("the validator itself is broken")


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_validator_that_breaks_fails_its_job(harness: WorkerHarness, isolation: str) -> None:
    if isolation == "async":

        @harness.lw.handler("job", retry=SOON)
        async def on_loop(ctx: Context, a: Annotated[int, BeforeValidator(_break)]) -> None: ...
    else:

        @harness.lw.handler("job", retry=SOON)
        def in_thread(ctx: SyncContext, a: Annotated[int, BeforeValidator(_break)]) -> None: ...

    job_id = harness.insert("job", '{"a": 1}', max_retries=1)
    worker = await harness.start_worker()
    await wait_until(lambda: harness.status(job_id) == "failed")
    assert harness.one("select attempt, error ->> 'type' from laneway.outcome") == (
        1,
        "InvalidInput",
    )
    await wait_until(lambda: worker.capacity.in_use == 0)
