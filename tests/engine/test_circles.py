"""A handler that waits for a job which cannot start because of it: explain names the circle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from laneway import Context, JobHandle, SyncContext
from laneway.app.open_database import open_database
from laneway.config.settings import Settings
from laneway.control.health_check import Finding
from laneway.control.job_type_health import check_circles
from tests.engine import waiting_child
from tests.support.worker_harness import WorkerHarness, wait_until

Make = Callable[..., WorkerHarness]


async def circle_of(harness: WorkerHarness, job: JobHandle) -> str:
    """The message of the circle, once explain names it."""

    async def look() -> list[str]:
        explained = await harness.lw.jobs.explain(job.id)
        return [one.message for one in explained.reasons if one.code == "circle"]

    (message,) = await wait_until(look)
    return str(message)


async def child_of(harness: WorkerHarness, parent: JobHandle) -> JobHandle:
    """The job that the parent submitted."""
    query = "select id from laneway.jobs where job_type = 'child' and tags = %s"
    found = await wait_until(lambda: harness.rows(query, [str(parent.id)]))
    return JobHandle(found[0][0], "child", parent.status, False, harness.lw)


def add_handlers(harness: WorkerHarness, **options: Any) -> None:
    lw = harness.lw

    @lw.handler("child", **options)
    async def child(ctx: Context) -> str:
        return "done"

    @lw.handler("parent", **options)
    async def parent(ctx: Context, key: str | None = None) -> object:
        tags = [str(ctx.job_id)]
        job = await lw.submit("child", {}, tags=tags, concurrency_key=key)
        return await job.wait()

    @lw.handler("thread_parent", **options)
    def thread_parent(ctx: SyncContext) -> object:
        return lw.sync.submit("child", {}, tags=[str(ctx.job_id)]).wait()


@pytest.mark.parametrize("job_type", ["parent", "thread_parent", "process_parent"])
async def test_circle_of_parent_and_child_in_one_full_lane_is_named(
    harness: WorkerHarness, job_type: str
) -> None:
    harness.lane("narrow", max_slots=1)
    add_handlers(harness, lane="narrow")
    if job_type == "process_parent":
        waiting_child.adopted_by(harness)
    await harness.start_worker()
    parent = await harness.lw.submit(
        job_type, {"dsn": harness.dsn} if "process" in job_type else {}
    )
    child = await child_of(harness, parent)
    message = await circle_of(harness, child)
    assert message.startswith(
        f"job {parent.id} (running in lane narrow, 1 of 1 slots) waits for this job;"
        " raise max_slots with `laneway lanes set narrow --max-slots 2`"
    )
    explained = await harness.lw.jobs.explain(child.id)
    assert explained.starts_in_s is None
    assert "first_in_lane" not in [one.code for one in explained.reasons]
    async with open_database(Settings.load(database_url=harness.dsn), role="tests") as db:
        check = await check_circles(db)
    assert check.finding is Finding.FAIL
    assert check.message == (
        f"job {child.id} cannot start: job {parent.id} (running in lane narrow, 1 of 1 slots)"
        " waits for it"
    )
    assert (check.next or "").startswith("raise max_slots with `laneway lanes set narrow ")
    reasons = {one.code: one.message for one in (await harness.lw.jobs.explain(parent.id)).reasons}
    assert reasons["waits_for_job"] == f"its handler waits for job {child.id}"
    # The cure that it names works, and nothing is left of the note.
    await harness.lw.lanes.set("narrow", max_slots=2)
    assert await parent.wait(60) == "done"
    assert harness.one("select count(*) from laneway.lease") == 0


async def test_note_of_a_wait_ends_with_the_wait(harness: WorkerHarness) -> None:
    go_on = asyncio.Event()
    has_given_up = asyncio.Event()

    @harness.lw.handler("child")
    async def child(ctx: Context) -> None: ...

    @harness.lw.handler("parent")
    async def parent(ctx: Context) -> None:
        job = await harness.lw.submit("child", delay=3600)
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as bound:
                bounds.append(bound)
                await job.wait()
        has_given_up.set()
        await go_on.wait()

    bounds: list[asyncio.Timeout] = []
    await harness.start_worker()
    job = await harness.lw.submit("parent")
    noted = "select count(*) from laneway.lease where waits_for is not null"
    await wait_until(lambda: harness.one(noted) == 1)
    bounds[0].reschedule(asyncio.get_running_loop().time())
    await wait_until(has_given_up.is_set)
    await wait_until(lambda: harness.one(noted) == 0)
    go_on.set()
    await job.wait(60)


async def test_circle_through_a_limit_of_the_run_is_named(harness: WorkerHarness) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values ('llm', 1)")
    add_handlers(harness, limits=["llm"])
    await harness.start_worker()
    parent = await harness.lw.submit("parent")
    message = await circle_of(harness, await child_of(harness, parent))
    assert f"job {parent.id} (holding the limit llm, 1 of 1) waits for this job" in message
    await parent.cancel()


async def test_circle_through_a_key_is_named(harness: WorkerHarness) -> None:
    add_handlers(harness)
    await harness.start_worker()
    parent = await harness.lw.submit("parent", {"key": "k"}, concurrency_key="k")
    message = await circle_of(harness, await child_of(harness, parent))
    assert f"job {parent.id} (holding its concurrency_key) waits for this job" in message
    await parent.cancel()


async def test_circle_through_the_room_of_the_only_worker_is_named(make_harness: Make) -> None:
    harness = make_harness(concurrency=1)
    add_handlers(harness)
    await harness.start_worker()
    parent = await harness.lw.submit("parent")
    message = await circle_of(harness, await child_of(harness, parent))
    assert f"job {parent.id} (taking all room of its workers) waits for this job" in message
    await parent.cancel()


async def test_wait_outside_of_a_handler_is_not_noted(harness: WorkerHarness) -> None:
    job = await harness.lw.submit("child", delay=3600)
    with pytest.raises(TimeoutError):
        await job.wait(0)
    assert harness.one("select count(*) from laneway.lease") == 0
