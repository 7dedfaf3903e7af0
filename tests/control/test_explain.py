"""Explain names every reason that holds, and none that does not."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from laneway.control import explain as room
from laneway.control import jobs, lanes
from laneway.control.explain import explain
from laneway.errors import NotFound
from laneway.store.database import Database
from tests.control.scene import Scene


async def codes(db: Database, job_id: UUID) -> list[str]:
    return [reason.code for reason in (await explain(db, job_id)).reasons]


async def told(db: Database, job_id: UUID, code: str) -> str:
    found = [r.message for r in (await explain(db, job_id)).reasons if r.code == code]
    assert len(found) == 1, code
    return found[0]


async def test_a_job_nobody_handles_says_so(db: Database, scene: Scene) -> None:
    job_id = scene.submit()
    assert await codes(db, job_id) == ["no_worker", "first_in_lane", "type_unpublished"]


async def test_nothing_in_its_way_means_it_is_about_to_start(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    assert await codes(db, scene.submit()) == ["about_to_start"]


async def test_workers_without_the_handler_or_the_lane_do_not_count(
    db: Database, scene: Scene
) -> None:
    scene.publish()
    job_id = scene.submit()
    scene.register(job_types=("other",))
    assert (await codes(db, job_id))[0] == "type_not_handled"
    scene.worker_id = uuid4()
    scene.register(serves=("interactive",))
    assert (await codes(db, job_id))[0] == "lane_not_served"


async def test_a_delayed_job_tells_when_its_time_comes(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    job_id = scene.submit(delay=3600.0)
    assert await codes(db, job_id) == ["delayed"]
    assert "s, at " in await told(db, job_id, "delayed")


async def test_a_backing_off_job_tells_its_retry(db: Database, scene: Scene) -> None:
    claim = scene.running()
    scene.settle(claim, "fail", error='{"type": "E", "message": "m"}', delay_s=60.0)
    assert "(retry 1 of 3)" in await told(db, claim.job_id, "delayed")


async def test_the_pause_gate_and_a_drained_lane_are_both_told(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    job_id = scene.submit()
    await lanes.pause(db, by="ann")
    await lanes.drain(db, "default", by="bob")
    assert await codes(db, job_id) == ["paused", "lane_disabled", "first_in_lane"]
    assert "by ann" in await told(db, job_id, "paused")
    await lanes.resume_all(db, by="ann")
    await lanes.resume(db, "default", by="bob")
    assert await codes(db, job_id) == ["about_to_start"]


async def test_full_slots_name_the_jobs_that_hold_them(db: Database, scene: Scene) -> None:
    held = [scene.running("ingestion").job_id for _ in range(2)]
    job_id = scene.submit("ingestion")
    message = await told(db, job_id, "slots_full")
    assert message.startswith("2 of 2 slots of the lane interactive")
    assert all(str(holder) in message for holder in held)


async def test_a_lane_without_slots_says_so(db: Database, scene: Scene) -> None:
    await lanes.tune(db, "interactive", {"max_slots": 0}, by="me")
    assert "no_slots" in await codes(db, scene.submit("ingestion"))


async def test_the_place_counts_only_what_goes_first_in_the_same_lane(
    db: Database, scene: Scene
) -> None:
    scene.submit("polarity")
    scene.submit("ingestion", priority=99)
    scene.submit("greet", priority=99)
    job_id = scene.submit("ingestion")
    scene.submit("ingestion")
    assert "2 jobs wait before it" in await told(db, job_id, "behind_others")
    await jobs.reprioritize(db, job_id, 50, by="me")
    assert "1 job waits before it" in await told(db, job_id, "behind_others")


async def test_the_place_is_counted_no_further_than_its_bound(
    db: Database, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "BOUND", 3)
    for _ in range(5):
        job_id = scene.submit()
    assert "3+ jobs wait" in await told(db, job_id, "behind_others")


async def test_a_running_job_tells_its_worker_its_cancel_and_its_lapse(
    db: Database, scene: Scene
) -> None:
    scene.register()
    claim = scene.running()
    assert await codes(db, claim.job_id) == ["running"]
    assert "on host:1" in await told(db, claim.job_id, "running")
    await jobs.cancel(db, claim.job_id, by="me")
    scene.conn.execute("update laneway.lease set lease_until = clock_timestamp() - interval '9 s'")
    assert await codes(db, claim.job_id) == ["running", "cancel_requested", "lease_lapsed"]
    assert "watchdog" in await told(db, claim.job_id, "lease_lapsed")


async def test_an_ended_job_tells_how(db: Database, scene: Scene) -> None:
    assert await codes(db, scene.completed()) == ["completed"]
    job_id = scene.failed("other")
    assert "ValueError: no; retry it" in await told(db, job_id, "failed")


async def test_an_unknown_job_cannot_be_explained(db: Database) -> None:
    with pytest.raises(NotFound):
        await explain(db, uuid4())
