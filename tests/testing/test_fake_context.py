"""A handler called with a fake context runs as a function: recorded, and nothing is written."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from laneway import Context, JobResult, Laneway, SyncContext
from laneway.engine.run.handler_channel import Interrupted
from laneway.errors import InvalidInput, Refused, SubJobsFailed
from laneway.testing import FakeContext, FakeSyncContext
from laneway.testing.fake_context import FakeLogLine, ProgressReport
from tests.testing.library_app import bind_book


async def read_pages(ctx: Context, pages: int) -> int:
    async for _ in ctx.track(range(pages)):
        pass
    await ctx.progress(pages, pages, "read", stage="reading")
    ctx.log.warning("tired")
    await ctx.save({"read": pages})
    return await ctx.step("sum", lambda: pages + 1)


def read_pages_plain(ctx: SyncContext, pages: int) -> int:
    for _ in ctx.track(range(pages)):
        pass
    ctx.progress(pages, pages, "read", stage="reading")
    ctx.log("tired", "warning")
    ctx.save({"read": pages})
    return ctx.step("sum", lambda: pages + 1)


async def test_async_handler_is_recorded() -> None:
    ctx = FakeContext()
    assert await read_pages(ctx, 2) == 3
    assert ctx.reports == [
        ProgressReport(1, 2),
        ProgressReport(2, 2),
        ProgressReport(2, 2, "read", "reading"),
    ]
    assert ctx.log_lines == [FakeLogLine("warning", "tired")]
    assert ctx.checkpoint == {"read": 2}
    assert ctx.steps == {"sum": 3}


def test_plain_handler_is_recorded() -> None:
    ctx = FakeSyncContext()
    assert read_pages_plain(ctx, 2) == 3
    assert ctx.reports[-1] == ProgressReport(2, 2, "read", "reading")
    assert ctx.log_lines == [FakeLogLine("warning", "tired")]
    assert ctx.checkpoint == {"read": 2}
    assert ctx.steps == {"sum": 3}


def test_handler_under_its_decorator_is_called_as_a_function() -> None:
    assert bind_book(FakeSyncContext(), title="Emma") == "EMMA"


async def test_job_is_as_the_test_describes_it() -> None:
    job_id = uuid4()
    ctx = FakeContext(
        attempt=3, payload={"a": 1}, checkpoint={"page": 7}, resources={"db": "x"}, job_id=job_id
    )
    assert (ctx.attempt, ctx.payload, ctx.checkpoint, ctx.job_id) == (
        3,
        {"a": 1},
        {"page": 7},
        job_id,
    )
    assert ctx.resources.db == "x"
    last = FakeSyncContext(
        attempt=3, max_retries=2, job_type="read", lane="slow", tags=("a",), created_by="ann"
    )
    assert last.is_last_attempt
    assert (last.job_type, last.lane, last.tags, last.created_by) == ("read", "slow", ("a",), "ann")
    assert not FakeContext().is_last_attempt
    assert not ctx.cancelled
    assert ctx.reports == []


async def test_steps_of_an_earlier_attempt_are_not_called_again() -> None:
    ctx = FakeContext(steps={"sum": 40})
    assert ctx.attempt == 2
    assert await ctx.step("sum", lambda: 1) == 40
    assert FakeSyncContext(steps={"sum": 40}).step("sum", lambda: 1) == 40


async def test_checkpoint_of_an_earlier_attempt_is_continued() -> None:
    ctx = FakeContext(checkpoint={"_tracked": {"items": 2}})
    assert [item async for item in ctx.track("abc")] == ["c"]


async def test_track_continues_after_the_items_done() -> None:
    ctx = FakeContext(tracked=2, checkpoint={"words": 7})
    assert (ctx.attempt, ctx.checkpoint, ctx.tracked) == (2, {"words": 7}, {"items": 2})
    assert [item async for item in ctx.track("abc")] == ["c"]
    assert ctx.tracked == {"items": 3}
    plain = FakeSyncContext(tracked={"pages": 1})
    assert list(plain.track("abc", name="pages")) == ["b", "c"]
    assert FakeContext(tracked=0).attempt == 1


async def test_second_fake_run_continues_where_the_first_stopped() -> None:
    first = FakeContext()
    async for page in first.track(range(5)):
        if page == 3:
            break
    second = FakeContext(checkpoint=first.checkpoint, tracked=first.tracked)
    assert [page async for page in second.track(range(5))] == [3, 4]


def test_invalid_positions_of_a_fake_context_are_refused() -> None:
    with pytest.raises(InvalidInput, match="tracked: must be the number of items done, not -1"):
        FakeContext(tracked=-1)
    with pytest.raises(InvalidInput, match="checkpoint: must be an object"):
        FakeSyncContext(tracked=1, checkpoint=[1])


async def test_plain_for_over_track_of_an_async_handler_says_async_for() -> None:
    ctx = FakeContext()
    with pytest.raises(TypeError, match="write `async for item in"):
        for _ in ctx.track("abc"):  # type: ignore[attr-defined]
            pass
    items = ctx.track("abc")
    assert await anext(items) == "a"
    assert [item async for item in items] == ["b", "c"]


async def test_rules_of_the_real_context_hold() -> None:
    ctx = FakeContext()
    await ctx.step("sum", lambda: 1)
    with pytest.raises(InvalidInput, match="ran already in this attempt"):
        await ctx.step("sum", lambda: 2)
    with pytest.raises(InvalidInput):
        await ctx.save(object())


async def test_cancelled_async_handler_ends_at_its_next_call() -> None:
    ctx = FakeContext(cancelled=True)
    assert ctx.cancelled
    with pytest.raises(asyncio.CancelledError):
        await read_pages(ctx, 2)
    assert ctx.reports == []


def test_cancelled_plain_handler_ends_at_its_next_call() -> None:
    ctx = FakeSyncContext()
    ctx.progress(1)
    ctx.cancel()
    assert ctx.cancelled
    with pytest.raises(Interrupted):
        ctx.progress(2)
    assert len(ctx.reports) == 1


async def test_retry_calls_again_without_waiting() -> None:
    answers = iter([OSError(), OSError(), "done"])

    def call() -> object:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    ctx = FakeContext()
    assert await ctx.retry(call) == "done"
    assert len(ctx.waits) == 2
    assert min(ctx.waits) > 0.5
    plain = FakeSyncContext()
    with pytest.raises(ZeroDivisionError):
        plain.retry(lambda: 1 // 0, tries=3)
    assert len(plain.waits) == 2


async def test_finish_keeps_the_result_and_uses_no_connection() -> None:
    ctx = FakeContext()
    await ctx.guard(conn=None)
    await ctx.finish(conn=None, result={"rows": 2})
    assert ctx.has_finished
    assert ctx.finished_result == {"rows": 2}
    with pytest.raises(Refused):
        await ctx.finish(conn=None)
    with pytest.raises(Refused):
        await ctx.save({})
    plain = FakeSyncContext()
    plain.guard(conn=None)
    plain.finish(conn=None, result=1)
    assert plain.finished_result == 1


async def test_limits_are_recorded() -> None:
    ctx = FakeContext()
    async with ctx.limit("openai"):
        pass
    plain = FakeSyncContext()
    with plain.limit("openai", "disk"):
        pass
    assert ctx.limits_held == [("openai",)]
    assert plain.limits_held == [("disk", "openai")]


async def test_fake_context_of_the_other_kind_is_refused_by_name() -> None:
    lw = Laneway()
    read = lw.handler("read")(read_pages)
    plain = lw.handler("plain")(read_pages_plain)
    with pytest.raises(
        InvalidInput, match="is a FakeSyncContext, but read_pages is an async def: use FakeContext"
    ):
        await read(FakeSyncContext(), pages=1)
    with pytest.raises(
        InvalidInput,
        match="is a FakeContext, but read_pages_plain is a plain def: use FakeSyncContext",
    ):
        plain(FakeContext(), pages=1)
    assert await read(FakeContext(), pages=1) == 2
    assert plain(FakeSyncContext(), pages=1) == 2


def test_log_takes_arguments_as_logging_does() -> None:
    ctx = FakeContext()
    ctx.log.info("page %s of %d", 3, 10)
    ctx.log.info("100 %")
    ctx.log.error("%d pages", "no")
    ctx.log.info("%(done)d of %(all)d", {"done": 3, "all": 10})
    ctx.log.info("read %s", {"done": 3})
    ctx.log.info("read %s", {})
    assert [line.message for line in ctx.log_lines] == [
        "page 3 of 10",
        "100 %",
        "%d pages ('no',)",
        "3 of 10",
        "read {'done': 3}",
        "read {}",
    ]


def test_log_call_never_fails_the_job() -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no text")

        __repr__ = __str__

    ctx = FakeContext()
    ctx.log("y %s", 2)
    ctx.log("%(n)d of %(all)d", {"n": 1, "all": 2}, level="debug")
    ctx.log("slow", "warning")
    ctx.log("level %s", "warning")
    ctx.log("odd", 7)
    ctx.log("loud", level="loud")
    ctx.log("unhashable", level=[])  # type: ignore[arg-type]
    ctx.log(Unprintable())
    ctx.log.error("got %s", Unprintable())
    assert ctx.log_lines == [
        FakeLogLine("info", "y 2"),
        FakeLogLine("debug", "1 of 2"),
        FakeLogLine("warning", "slow"),
        FakeLogLine("info", "level warning"),
        FakeLogLine("info", "odd (7,)"),
        FakeLogLine("info", "loud"),
        FakeLogLine("info", "unhashable"),
        FakeLogLine("info", "<Unprintable>"),
        FakeLogLine("error", "got %s <tuple>"),
    ]


async def test_fake_waits_return_what_the_test_gave() -> None:
    async def handler(ctx: Context) -> list[Any]:
        parts = await ctx.run_all("parts", [("part", {"n": 1}), ("part", {"n": 2})])
        decision = await ctx.wait_event("reviewed", key="a")
        await ctx.sleep("night", 60)
        return [parts, decision, [one.result async for one in ctx.results()]]

    ctx = FakeContext(sub_results={"parts": [1, 2]}, events={"reviewed": "yes"}, results=["r"])
    assert await handler(ctx) == [[1, 2], "yes", ["r"]]
    assert [job.payload for job in ctx.sub_jobs["parts"]] == [{"n": 1}, {"n": 2}]
    assert ctx.sleeps == {"night": 60.0}


def test_fake_waits_fail_as_the_test_wants() -> None:
    failed = JobResult(uuid4(), "part", None, "failed")
    ctx = FakeSyncContext(sub_results={"parts": [failed]}, events={"reviewed": TimeoutError})
    with pytest.raises(SubJobsFailed, match="1 of 1 sub-jobs"):
        ctx.run_all("parts", [("part", {})])
    assert ctx.run_all("parts", [("part", {})], failures="return") == [failed]
    with pytest.raises(TimeoutError):
        ctx.wait_event("reviewed")
    with pytest.raises(InvalidInput, match="has no 'other'"):
        ctx.run_all("other", [("part", {})])
    with pytest.raises(InvalidInput, match=r"jobs\[0\].after: sub-jobs start at once"):
        ctx.run_all("parts", [("part", {}, {"after": [uuid4()]})])
