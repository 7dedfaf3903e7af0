"""`lw.jobs`, `lw.lanes`, `lw.limits` and `lw.schedules`, with and without an event loop."""

from __future__ import annotations

import pytest

from laneway import Lane, Laneway
from laneway.app.sync_resources import SyncJobs, SyncLanes, SyncLimits, SyncSchedules
from laneway.control.resources import Jobs, Lanes, Limits, Schedules
from laneway.errors import InvalidInput, NotFound, Refused


async def test_lanes_are_listed_changed_and_rolled_back(dsn: str) -> None:
    async with Laneway(dsn) as lw:
        made = await lw.lanes.create("videos", max_slots=2, by="ann")
        changed = await lw.lanes.set("videos", max_slots=3, by="ann")
        assert (made.max_slots, changed.max_slots, changed.updated_by) == (2, 3, "ann")
        assert (await lw.lanes.take("videos", "cut", by="ann")).job_types == ("cut",)
        assert not (await lw.lanes.drain("videos")).enabled
        assert (await lw.lanes.resume("videos")).updated_by == "application"
        assert "videos" in [each.lane.name for each in await lw.lanes.list()]
        newest = (await lw.lanes.history("videos"))[0]
        assert newest.by == "application"
        await lw.lanes.rollback("videos", by="ann")
        assert not (await lw.lanes.get("videos")).lane.enabled


async def test_all_lanes_are_loaded(dsn: str) -> None:
    async with Laneway(dsn) as lw:
        planned = await lw.lanes.load([Lane("docs", max_slots=20)], dry_run=True)
        assert "docs" not in [each.lane.name for each in await lw.lanes.list()]
        done = await lw.lanes.load([Lane("docs", max_slots=20)], by="ann")
        assert done.changes == planned.changes
        names = [each.lane.name for each in await lw.lanes.list()]
        assert names == ["analysis", "default", "docs"]


async def test_limits_are_set_and_deleted(dsn: str) -> None:
    async with Laneway(dsn) as lw:
        assert (await lw.limits.set("gpu", max_concurrent=1, by="ann")).is_new
        assert not (await lw.limits.set("gpu", max_concurrent=2, by="ann")).is_new
        assert (await lw.limits.get("gpu")).limit.max_concurrent == 2
        await lw.limits.delete("gpu", by="ann")
        with pytest.raises(NotFound):
            await lw.limits.get("gpu")
        assert "gpu" not in [each.limit.name for each in await lw.limits.list()]
        await lw.limits.rollback("gpu", by="ann")
        assert [each.by for each in await lw.limits.history("gpu")] == ["ann"] * 4


async def test_schedules_are_set_run_and_deleted(dsn: str) -> None:
    async with Laneway(dsn) as lw:

        @lw.handler("count")
        async def count(ctx: object, to: int = 3) -> int:
            return to

        with pytest.raises(InvalidInput, match="to"):
            await lw.schedules.set("often", job_type="count", cron="@daily", payload={"to": "x"})
        await lw.schedules.set("often", job_type="count", cron="@daily", by="ann")
        assert (await lw.schedules.run("often", by="ann")).job_id is not None
        assert not (await lw.schedules.disable("often")).enabled
        assert [each.name for each in await lw.schedules.list()] == ["often"]
        await lw.schedules.delete("often", by="ann")


async def test_jobs_are_listed_explained_and_changed(dsn: str) -> None:
    async with Laneway(dsn) as lw:
        job = await lw.submit("t", delay=60)
        assert (await lw.jobs.reprioritize(job.id, 7, by="ann")).priority == 7
        reasons = (await lw.jobs.explain(str(job.id))).reasons
        assert "delayed" in {reason.code for reason in reasons}
        assert (await lw.jobs.cancel(job.id, "not now", by="ann")).cancelled_by == "ann"
        (found,) = (await lw.jobs.list(status="cancelled", job_type="t")).items
        assert found.id == job.id
        assert (await lw.jobs.retry(job.id, by="ann")).status == "approved"
        with pytest.raises(Refused, match="cancel it first"):
            await lw.jobs.delete(job.id, by="ann")
        with pytest.raises(InvalidInput, match=r"jobtype: .* did you mean job_type"):
            await lw.jobs.list(jobtype="t")  # type: ignore[call-arg]
        with pytest.raises(InvalidInput, match="id: must be a UUID"):
            await lw.jobs.get("no id")


def test_same_verbs_work_without_an_event_loop(dsn: str) -> None:
    lw = Laneway(dsn)
    try:
        assert lw.sync.lanes.set("default", lease_seconds=40, by="ann").lease_seconds == 40
        assert lw.sync.limits.get("openai").limit.max_concurrent == 8
        lw.sync.schedules.set("daily", job_type="t", cron="@daily", by="ann")
        assert [each.name for each in lw.sync.schedules.list()] == ["daily"]
        job = lw.sync.submit("t")
        assert lw.sync.jobs.cancel(job.id, by="ann").status == "cancelled"
    finally:
        lw.sync.close()


@pytest.mark.parametrize(
    "blocking, verbs",
    [(SyncLanes, Lanes), (SyncLimits, Limits), (SyncSchedules, Schedules), (SyncJobs, Jobs)],
)
def test_every_verb_has_a_blocking_form(blocking: type, verbs: type) -> None:
    names = {name for name in dir(verbs) if not name.startswith("_")}
    assert names <= set(dir(blocking))
