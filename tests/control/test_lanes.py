"""Laws of the operator's verbs on lanes and the pause gate."""

from __future__ import annotations

import pytest

from laneway.control import lanes
from laneway.domain.lane import SEEDED_LANES, Lane
from laneway.domain.overview import DEPTH_BOUND, LaneStatus, TypeLoad
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store.database import Database
from tests.support.job_factory import JobFactory


async def status_of(db: Database, name: str) -> LaneStatus:
    return {each.lane.name: each for each in await lanes.inspect(db)}[name]


async def test_inspect_shows_slots_depth_and_oldest_wait(db: Database, factory: JobFactory) -> None:
    factory.running("ingestion")
    factory.submit("ingestion")
    factory.submit("polarity")
    factory.submit("greet", delay=60.0)
    seen = await status_of(db, "interactive")
    assert (seen.slots_used, seen.utilization, seen.depth, seen.depth_is_capped) == (
        1,
        0.5,
        2,
        False,
    )
    assert seen.oldest_wait_s is not None
    assert 0 <= seen.oldest_wait_s < 60
    assert [each.job_type for each in seen.waiting] == ["ingestion", "polarity"]
    assert (await status_of(db, "default")).depth == 0
    assert [each.lane.name for each in await lanes.inspect(db)] == sorted(
        lane.name for lane in SEEDED_LANES
    )


async def test_queue_depth_over_bound_is_shown_as_capped(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "DEPTH_BOUND", 3)
    for _ in range(3):
        factory.submit()
    exact = await status_of(db, "default")
    assert (exact.depth, exact.depth_is_capped) == (3, False)
    factory.submit()
    over = await status_of(db, "default")
    assert (over.depth, over.depth_is_capped) == (3, True)


def test_depths_of_several_types_add_up_to_capped() -> None:
    half = DEPTH_BOUND // 2 + 1
    loads = tuple(TypeLoad(name, half, False, 1.0) for name in "ab")
    both = LaneStatus(Lane("a"), 0, loads)
    assert (both.depth, both.depth_is_capped, both.oldest_wait_s) == (DEPTH_BOUND, True, 1.0)


async def test_new_lane_takes_defaults_and_an_existing_one_is_never_overwritten(
    db: Database,
) -> None:
    made = await lanes.create(db, {"name": "video", "max_slots": None}, by="me")
    assert (made.max_slots, made.poll_interval_ms, made.updated_by) == (None, 5000, "me")
    with pytest.raises(Refused, match="exists"):
        await lanes.create(db, {"name": "video"}, by="me")


async def test_tuning_changes_only_named_settings(db: Database, factory: JobFactory) -> None:
    before = (await status_of(db, "interactive")).lane
    with factory.listening() as heard:
        after = await lanes.tune(db, "interactive", {"max_slots": 7}, by="me")
    assert (after.max_slots, after.job_types) == (7, before.job_types)
    assert after.updated_by == "me"
    assert heard == ["wake ingest_image\x1fingestion\x1fpolarity"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"max_slots": -1},
        {"name": "x"},
        {"updated_by": "x"},
        {"job_types": ["ingestion"]},
        {"slots": 1},
    ],
)
async def test_change_outside_the_rules_is_refused(db: Database, change: dict[str, object]) -> None:
    """`ingestion` is in another lane: the database raises the same message."""
    with pytest.raises(InvalidInput):
        await lanes.tune(db, "system", change, by="me")


async def test_default_lane_lists_no_types(db: Database) -> None:
    with pytest.raises(InvalidInput, match="default"):
        await lanes.tune(db, "default", {"job_types": ["greet"]}, by="me")


async def test_unknown_lanes_are_not_found_and_hostile_names_are_refused(db: Database) -> None:
    for verb in (
        lanes.tune(db, "missing", {"max_slots": 1}, by="me"),
        lanes.drain(db, "missing", by="me"),
        lanes.move_type(db, "ingestion", "missing", by="me"),
    ):
        with pytest.raises(NotFound, match="missing"):
            await verb
    for name in ('"; drop table laneway.jobs; --', "A", "", "x" * 64, "a\x00"):
        with pytest.raises(InvalidInput):
            await lanes.drain(db, name, by="me")


async def test_failed_move_leaves_the_type_where_it_was(db: Database) -> None:
    with pytest.raises(NotFound):
        await lanes.move_type(db, "ingestion", "missing", by="me")
    assert "ingestion" in (await status_of(db, "interactive")).lane.job_types


async def test_moved_type_takes_its_waiting_jobs_along(db: Database, factory: JobFactory) -> None:
    job_id = factory.submit("ingestion")
    with factory.listening() as heard:
        await lanes.move_type(db, "ingestion", "system", by="me")
    assert heard == ["wake ingestion"]
    assert (await status_of(db, "system")).depth == 1
    (claim,) = factory.claim("ingestion")
    assert claim.job_id == job_id
    back = await lanes.move_type(db, "ingestion", "default", by="me")
    assert back.job_types == ()
    assert (await status_of(db, "system")).lane.job_types.count("ingestion") == 0


async def test_drained_lane_claims_nothing_until_it_is_resumed(
    db: Database, factory: JobFactory
) -> None:
    factory.submit("ingestion")
    assert not (await lanes.drain(db, "interactive", by="me")).enabled
    assert factory.claim("ingestion") == []
    assert (await lanes.resume(db, "interactive", by="me")).enabled
    assert len(factory.claim("ingestion")) == 1


async def test_pause_stops_every_claim_and_names_actor(db: Database, factory: JobFactory) -> None:
    factory.submit()
    gate = await lanes.pause(db, by="ann")
    assert gate.paused
    assert gate.paused_by == "ann"
    assert factory.claim() == []
    with factory.listening() as heard:
        assert not (await lanes.resume_all(db, by="bob")).paused
    assert heard == ["wake *"]
    assert len(factory.claim()) == 1
