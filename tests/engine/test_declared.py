"""Lanes and limits in code are created where the database has none, and never overwrite one."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from laneway import Context, Lane, Limit, SyncContext
from laneway.errors import InvalidInput
from tests.engine import child_features
from tests.support.worker_harness import WorkerHarness

Make = Callable[..., WorkerHarness]
LIMITS = (
    "select name, max_concurrent, rate_count, rate_period_s, scope from laneway.limits"
    " where name in ('llm', 'gpu', 'openai') order by 1"
)


async def test_declared_lanes_are_created_with_their_types(make_harness: Make) -> None:
    harness = make_harness(
        lanes=[Lane("docs", max_slots=20, job_types=["index"]), Lane("video", max_slots=None)]
    )

    @harness.lw.handler("render", lane="video")
    async def render(ctx: Context) -> None: ...

    await harness.start_worker()
    rows = harness.rows(
        "select name, max_slots, job_types, poll_interval_ms from laneway.worker_lanes"
        " where name in ('docs', 'video') order by 1"
    )
    assert rows == [("docs", 20, ["index"], 5000), ("video", None, ["render"], 5000)]


async def test_declared_lane_that_differs_is_logged_and_not_overwritten(
    make_harness: Make, caplog: pytest.LogCaptureFixture
) -> None:
    lanes = [Lane("docs", max_slots=1), Lane("interactive", max_slots=2)]
    harness = make_harness(lanes=lanes)
    harness.lane("docs", max_slots=5, poll_interval_ms=700)
    await harness.start_worker()
    found = [one.getMessage() for one in caplog.records if "differs from" in one.getMessage()]
    assert found == [
        (
            "lane docs in the database differs from lanes=, and the database decides: max_slots is"
            " 5, configured 1. To change it: `laneway lanes set docs --max-slots 1`"
        )
    ]
    assert harness.one("select max_slots from laneway.worker_lanes where name = 'docs'") == 5


async def test_lanes_in_code_come_before_lanes_in_settings(
    make_harness: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_LANES", '{"docs": {"max_slots": 3}, "more": {"max_slots": 4}}')
    harness = make_harness(lanes=[Lane("docs", max_slots=20)])
    await harness.start_worker()
    rows = harness.rows(
        "select name, max_slots from laneway.worker_lanes where name in ('docs', 'more') order by 1"
    )
    assert rows == [("docs", 20), ("more", 4)]


async def test_declared_limits_are_created_and_differences_logged(
    make_harness: Make, caplog: pytest.LogCaptureFixture
) -> None:
    harness = make_harness(
        limits=[
            Limit("llm", max_concurrent=4, rate="20/s"),
            Limit("gpu", scope="host"),
            Limit("openai", max_concurrent=None, rate="500/1m"),
        ]
    )

    @harness.lw.handler("job", limits=["llm"])
    async def job(ctx: Context) -> None: ...

    await harness.start_worker()
    assert harness.rows(LIMITS) == [
        ("gpu", 1, None, None, "host"),
        ("llm", 4, 20, 1.0, "cluster"),
        ("openai", 8, None, None, "cluster"),
    ]
    found = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert found == [
        (
            "limit openai in the database differs from limits=, and the database decides:"
            " max_concurrent is 8, configured unbounded; rate is none, configured 500/60s. To"
            " change it: `laneway limits set openai --max-concurrent unbounded --rate 500/60s`"
        )
    ]


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_limit_that_a_call_names_is_created_unbounded_and_logged_once(
    harness: WorkerHarness, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("async_job", max_retries=0)
    async def async_job(ctx: Context) -> None:
        async with ctx.limit("openai", "fresh"), ctx.limit("fresh"):
            pass

    @harness.lw.handler("thread_job", max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        with ctx.limit("openai", "fresh"), ctx.limit("fresh"):
            pass

    job_type, payload = f"{isolation}_job", {}
    if isolation == "process":
        await child_features.adopted_by(harness)
        job_type, payload = "child_unknown_limit", {"name": "fresh"}
    else:
        await harness.start_worker()
    caplog.clear()
    for _ in range(2):
        ended = await harness.ended(await harness.lw.submit(job_type, payload), 60)
        assert ended.status == "completed", ended.error
    assert harness.one("select max_concurrent from laneway.limits where name = 'fresh'") is None
    found = [one.getMessage() for one in caplog.records if "limit fresh" in one.getMessage()]
    assert found == [
        (
            "limit fresh did not exist and was created without a bound: to bound it,"
            " `laneway limits set fresh --max-concurrent N`"
        )
    ]


async def test_limit_that_was_deleted_is_created_again(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        async with ctx.limit("fresh"):
            pass
        await lose()
        with pytest.raises(InvalidInput, match="fresh does not exist"):
            async with ctx.limit("fresh"):
                pass
        async with ctx.limit("fresh"):
            pass

    async def lose() -> None:
        harness.do("delete from laneway.limits where name = 'fresh'")

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert ended.status == "completed", ended.error


async def test_wrong_name_of_a_limit_is_refused(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        with pytest.raises(InvalidInput, match="limit: must be 1 to 63 characters"):
            async with ctx.limit("Not A Name"):
                pass

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("job"))
    assert ended.status == "completed", ended.error


async def test_request_creates_a_limit_as_declared_or_unbounded(
    make_harness: Make, caplog: pytest.LogCaptureFixture
) -> None:
    harness = make_harness(limits=[Limit("llm", max_concurrent=4, rate="20/s")])
    async with harness.lw.limit("llm", "fresh"):
        pass
    async with harness.lw.limit("llm", "fresh"):
        pass
    with harness.lw.sync.limit("llm"):
        pass
    assert harness.rows(LIMITS)[0] == ("llm", 4, 20, 1.0, "cluster")
    assert harness.one("select max_concurrent from laneway.limits where name = 'fresh'") is None
    assert caplog.text.count("did not exist and was created without a bound") == 1
