"""The estimated start of a job agrees with what runs and waits in its lane."""

from __future__ import annotations

from uuid import UUID

import pytest

from laneway.control import lanes
from laneway.control.explain import explain
from laneway.store.database import Database
from laneway.store.workers import touch
from tests.control.test_explain import ended_after, starts_in
from tests.support.job_factory import JobFactory

# Figures are large, so that a slow machine makes no difference.
NEAR_S = 60


def running_since(factory: JobFactory, job_type: str, ran_s: float) -> UUID:
    job = factory.running(job_type)
    factory.conn.execute(
        "update laneway.lease l set claimed_at = clock_timestamp() - make_interval(secs => %s)"
        " from laneway.jobs j where j.seq = l.seq and j.id = %s",
        [ran_s, job.job_id],
    )
    return job.job_id


@pytest.fixture
async def docs(db: Database, factory: JobFactory) -> None:
    """A lane of ten slots whose jobs usually run for 10,000 s."""
    await lanes.create(db, {"name": "docs", "job_types": ["page"], "max_slots": 10}, by="ann")
    factory.register(("page",))
    factory.publish("page")
    ended_after(factory, "page", 10_000, 30)


@pytest.mark.usefixtures("docs")
async def test_lowered_slots_are_free_when_enough_jobs_have_ended(
    db: Database, factory: JobFactory
) -> None:
    for left_s in range(1000, 11_000, 1000):
        running_since(factory, "page", 10_000 - left_s)
    job_id = factory.submit("page")
    assert await starts_in(db, job_id) == pytest.approx(1000, abs=NEAR_S)
    await lanes.tune(db, "docs", {"max_slots": 1}, by="ann")
    assert await starts_in(db, job_id) == pytest.approx(10_000, abs=NEAR_S)
    await lanes.tune(db, "docs", {"max_slots": 2}, by="ann")
    assert await starts_in(db, job_id) == pytest.approx(9000, abs=NEAR_S)


@pytest.mark.usefixtures("docs")
async def test_job_that_runs_too_long_is_not_expected_to_end_now(
    db: Database, factory: JobFactory
) -> None:
    await lanes.tune(db, "docs", {"max_slots": 1}, by="ann")
    running_since(factory, "page", 3_600_000)
    assert await starts_in(db, factory.submit("page")) == pytest.approx(10_000, abs=NEAR_S)


async def test_unbounded_lane_has_a_free_slot_beside_a_long_job(
    db: Database, factory: JobFactory
) -> None:
    factory.register(("short", "long"))
    for job_type, run_s in (("short", 0.1), ("long", 3600)):
        factory.publish(job_type)
        ended_after(factory, job_type, run_s, 30)
    running_since(factory, "long", 0)
    ids = [factory.submit("short") for _ in range(4)]
    found = await explain(db, ids[3])
    assert [reason.code for reason in found.reasons] == ["behind_others"]
    assert found.starts_in_s == pytest.approx(0.3, abs=0.05)


async def test_idle_worker_starts_as_many_jobs_as_it_has_room_for(
    db: Database, factory: JobFactory
) -> None:
    """A first burst in an unbounded lane: the pace of the quiet minutes before says nothing."""
    factory.register(("page",))
    factory.publish("page")
    kinds = {"async": {"used": 0, "total": 10}}
    factory.run(touch(factory.worker_id, None, {"kinds": kinds, "full": {}}))
    for ago_s in (800, 600, 400):
        ended_after(factory, "page", 1000, ago_s)
    ids = [factory.submit("page") for _ in range(100)]
    assert await starts_in(db, ids[9]) == 0
    assert await starts_in(db, ids[10]) == pytest.approx(1000, abs=NEAR_S)
    assert await starts_in(db, ids[99]) == pytest.approx(9000, abs=NEAR_S)
    # Ten run now, which the worker has not reported yet.
    assert len(factory.claim("page", room=10)) == 10
    assert await starts_in(db, ids[99]) == pytest.approx(9000, abs=1000 + NEAR_S)


async def test_unknown_type_takes_the_mean_of_all_jobs_of_the_lane(
    db: Database, factory: JobFactory
) -> None:
    await lanes.create(
        db, {"name": "docs", "job_types": ["short", "long", "new"], "max_slots": 1}, by="ann"
    )
    factory.register(("short", "long", "new"))
    for job_type in ("short", "long", "new"):
        factory.publish(job_type)
    for _ in range(9):
        ended_after(factory, "short", 0.1, 30)
    ended_after(factory, "long", 36_000, 30)
    running_since(factory, "new", 0)
    ids = [factory.submit(job_type) for job_type in ("short", "long", "short")]
    assert await starts_in(db, ids[0]) == pytest.approx(3600, abs=NEAR_S)
    assert await starts_in(db, ids[2]) == pytest.approx(3600 + 36_000, abs=NEAR_S)
