"""Results of handlers: encoded by the return hint, and never a reason to run the handler again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import psycopg
import pytest

from laneway import Analysis, Context, Laneway
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.result_type import UNSET, ResultType
from laneway.errors import ConfigError, InvalidResult
from tests.engine import result_handlers
from tests.engine.result_handlers import BAD, REPORT, STORED, Report
from tests.support.worker_harness import SOON, WorkerHarness

ISOLATIONS = ["async", "thread", "process"]


def adopt(harness: WorkerHarness) -> None:
    for handler in result_handlers.lw.handlers:
        harness.lw.handlers.add(handler)


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_result_is_encoded_by_the_return_hint(harness: WorkerHarness, isolation: str) -> None:
    adopt(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_report")
    ended = await harness.ended(job)
    assert (ended.status, ended.result) == ("completed", STORED)
    text = harness.one("select result::text from laneway.outcome")
    assert ResultType(Report).decode(text, DEFAULT_LIMITS) == REPORT


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_result_that_cannot_be_stored_fails_job_without_retry(
    harness: WorkerHarness, isolation: str
) -> None:
    adopt(harness)
    await harness.start_worker()
    jobs = {how: await harness.lw.submit(f"{isolation}_bad", {"how": how}) for how in BAD}
    for how, job in jobs.items():
        ended = await harness.ended(job)
        assert (ended.status, ended.attempt, ended.result) == ("failed", 1, None), how
        assert ended.error is not None
        assert ended.error.type == "InvalidResult"
        assert ended.error.message.startswith(BAD[how][1])


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_result_of_another_type_than_the_hint_fails_job_without_retry(
    harness: WorkerHarness, isolation: str
) -> None:
    adopt(harness)
    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit(f"{isolation}_mismatch"))
    assert (ended.status, ended.attempt) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.message == (
        "result.n: must be a valid integer; the return hint is dict[str, int]"
    )


async def test_finish_in_own_transaction_encodes_by_the_return_hint(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("report")
    async def report(ctx: Context) -> Report:
        async with await psycopg.AsyncConnection.connect(harness.dsn) as conn:
            await ctx.finish(conn=conn, result=REPORT)
        return REPORT

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("report"))
    assert (ended.status, ended.result) == ("completed", STORED)


async def test_finish_in_own_transaction_with_bad_result_fails_without_retry(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("report", retry=SOON)
    async def report(ctx: Context) -> Report:
        async with await psycopg.AsyncConnection.connect(harness.dsn) as conn:
            await ctx.finish(conn=conn, result={"id": 7})
        return REPORT

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("report"))
    assert (ended.status, ended.attempt) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.type == "InvalidResult"


@pytest.mark.parametrize(
    "act,place",
    [
        (lambda ctx: ctx.step("one", lambda: {"at": REPORT.at}), "step 'one'.at: a datetime"),
        (lambda ctx: ctx.save({"at": REPORT.at}), "checkpoint.at: a datetime"),
    ],
)
async def test_step_or_checkpoint_that_cannot_be_stored_is_not_retried(
    harness: WorkerHarness, act: Callable[[Context], Any], place: str
) -> None:
    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        await act(ctx)

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert (ended.status, ended.attempt) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.type == "InvalidResult"
    assert ended.error.message.startswith(place)


@pytest.mark.parametrize("plan", [{"at": REPORT.at}, None])
async def test_analysis_that_cannot_be_stored_is_not_repeated(
    harness: WorkerHarness, plan: Any
) -> None:
    calls: list[int] = []

    @harness.lw.handler("job", approval=True, retry=SOON)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan_job() -> Analysis:
        calls.append(1)
        return Analysis(plan=plan) if plan else "cheap"  # type: ignore[return-value]

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == "InvalidResult"
    assert calls == [1]


def test_return_hint_without_json_form_is_refused_at_registration() -> None:
    lw = Laneway("postgresql://unused@nowhere/nothing")
    with pytest.raises(ConfigError, match=r"'job': result: its type has no JSON form.*dataclass"):

        @lw.handler("job")
        async def job(ctx: Context) -> WorkerHarness:
            raise NotImplementedError


@pytest.mark.parametrize(
    "hint,value,text",
    [
        (dict, {"a": 1}, '{"a":1}'),
        (dict, {"at": REPORT.at}, '{"at":"2026-01-02T03:04:00Z"}'),
        (list[int], (1, 2), "[1,2]"),
        (type(None), None, "null"),
        (type(None), {"a": 1}, '{"a":1}'),
        (dict[str, datetime] | None, None, "null"),
        (float, 5, "5"),
    ],
)
def test_return_hint_accepts_what_it_can_encode(hint: Any, value: object, text: str) -> None:
    assert ResultType(hint).encode(value, DEFAULT_LIMITS) == text


@pytest.mark.parametrize(
    "hint,value,error",
    [
        (dict[str, Any], {"a": [object()]}, "result.a[0]: an object is not a JSON value; the"),
        (list[datetime], [REPORT.at, {1}], "result[1]: must be a valid datetime"),
    ],
)
def test_bad_result_is_named_with_place_type_and_hint(hint: Any, value: object, error: str) -> None:
    with pytest.raises(InvalidResult) as caught:
        ResultType(hint).encode(value, DEFAULT_LIMITS)
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize("hint", [UNSET, int, dict[str, Any]])
async def test_forgotten_await_is_asked_for(hint: Any) -> None:
    async def count() -> int:
        return 1

    forgotten = count()
    with pytest.raises(
        InvalidResult, match=r"a coroutine is not a JSON value; is an await missing\?$"
    ):
        ResultType(hint).encode(forgotten, DEFAULT_LIMITS)
    assert await forgotten == 1
