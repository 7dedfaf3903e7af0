"""Lanes and limits in code are created where the database has none, and never overwrite one."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest

from laneway import Context, Lane, Limit, SyncContext
from laneway.errors import ConfigError, InvalidInput
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
    # An operator's change is expected. That changed code has no effect is not.
    for by, level in (("ann", logging.INFO), ("worker old", logging.WARNING)):
        caplog.clear()
        caplog.set_level(logging.INFO, "laneway")
        harness.lane("docs", updated_by=by)
        await harness.start_worker()
        records = [one for one in caplog.records if "differs from" in one.getMessage()]
        assert [one.levelno for one in records] == [level]
    found = [one.getMessage() for one in records]
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


async def test_schedule_that_differs_is_logged_and_not_overwritten(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("report")
    async def report(ctx: Context, day: str = "today") -> None: ...

    harness.lw.schedule("nightly", "report", cron="0 3 * * *", tags=["a", "b"])
    harness.lw.schedule("same", "report", cron="0 4 * * *", payload={"day": "x"})
    harness.lw.schedule("other", "report", cron="0 5 * * *", payload={"day": "x"})
    await harness.start_worker()
    assert "differs from" not in caplog.text
    harness.do(
        "update laneway.schedules set cron = '0 9 * * *', tags = '{}' where name = 'nightly'"
    )
    harness.do("update laneway.schedules set priority = 7, enabled = false where name = 'same'")
    harness.do("""update laneway.schedules set payload = '{"day": "y"}' where name = 'other'""")
    await harness.start_worker()
    found = [one.getMessage() for one in caplog.records if "differs from" in one.getMessage()]
    head = "in the database differs from the code, and the database decides:"
    assert found == [
        (
            f"schedule nightly {head} cron is 0 9 * * *, configured 0 3 * * *; tags is none,"
            " configured a, b. To change it:"
            " `laneway schedules set nightly --cron '0 3 * * *' --tag a --tag b`"
        ),
        (
            f"schedule other {head} the payload is another. To change it:"
            " `laneway schedules set other --payload '…'`"
        ),
    ]
    assert harness.one("select cron from laneway.schedules where name = 'nightly'") == "0 9 * * *"


async def test_missing_argument_of_a_schedule_names_its_line(harness: WorkerHarness) -> None:
    harness.lw.schedule("nightly", "report", cron="0 3 * * *")

    @harness.lw.handler("report")
    async def report(ctx: Context, day: str) -> None: ...

    with pytest.raises(ConfigError, match=r"test_declared\.py:\d+: schedule 'nightly': .*day"):
        await harness.start_worker()


async def test_misspelt_lane_and_limit_are_warned_of_with_the_nearest_name(
    make_harness: Make, caplog: pytest.LogCaptureFixture
) -> None:
    harness = make_harness(lanes=[Lane("docs")], limits=[Limit("llm-fast")])

    @harness.lw.handler("job", lane="dosc", limits=["llm-fats", "opneai"])
    async def job(ctx: Context) -> None: ...

    @harness.lw.handler("other", lane="interactiv")
    async def other(ctx: Context) -> None: ...

    await harness.start_worker()
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    for kind, name, near in (
        ("lane", "dosc", "docs"),
        ("lane", "interactiv", "interactive"),
        ("limit", "llm-fats", "llm-fast"),
        ("limit", "opneai", "openai"),
    ):
        (line,) = [one for one in warned if one.startswith(f"{kind} {name} did not exist")]
        assert line.endswith(f"N`; did you mean {near}?")


async def test_start_says_what_it_created(
    make_harness: Make, caplog: pytest.LogCaptureFixture
) -> None:
    harness = make_harness(
        lanes=[Lane("docs", max_slots=20)], limits=[Limit("llm", max_concurrent=4, rate="20/s")]
    )

    @harness.lw.handler("report")
    async def report(ctx: Context) -> None: ...

    harness.lw.schedule("newyear", "report", cron="0 0 1 1 *")
    harness.lw.schedule("off", "report", cron="0 0 1 1 *", enabled=False)
    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    found = [one.getMessage() for one in caplog.records if "created the" in one.getMessage()]
    assert found[:2] == [
        "created the lane docs: max_slots 20",
        "created the limit llm: max_concurrent 4, rate 20/s",
    ]
    assert re.fullmatch(r"created the schedule newyear: next run \d+-01-01T00:00\+00:00", found[2])
    assert found[3:] == ["created the schedule off: disabled"]
    caplog.clear()
    await harness.start_worker()
    assert "created the" not in caplog.text
