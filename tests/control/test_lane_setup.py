"""Loading a set of lanes is one audited change that a rollback or another load undoes."""

from __future__ import annotations

import pytest

from laneway.config.lanes import preset
from laneway.control import audit, history, lanes
from laneway.domain.audit import AuditFilter
from laneway.domain.lane import SEEDED_LANES, Lane
from laneway.domain.lane_setup import read_table
from laneway.errors import InvalidInput
from laneway.store import lanes as store
from laneway.store.database import Database
from tests.support.job_factory import JobFactory

SETUP = {
    "docs": {"max_slots": 20, "job_types": ["ingestion", "index"]},
    "interactive": {"max_slots": 1, "job_types": ["projection"]},
    "default": {"max_slots": None, "poll_interval_ms": 1000},
}


async def present(db: Database) -> dict[str, Lane]:
    return (await db.run(store.read())).lanes


async def test_load_replaces_lanes_in_one_audited_change(db: Database, factory: JobFactory) -> None:
    version = (await db.run(store.read())).version
    before = await present(db)
    with factory.listening() as heard:
        done = await lanes.load(db, tuple(read_table(SETUP)), by="me")
    assert {each.name: each.action for each in done.changes} == {
        "docs": "created",
        "interactive": "changed",
        "maintenance": "deleted",
        "system": "deleted",
    }
    found = await present(db)
    assert sorted(found) == ["analysis", "default", "docs", "interactive"]
    assert found["docs"].job_types == ("ingestion", "index")
    assert (found["interactive"].max_slots, found["interactive"].updated_by) == (1, "me")
    assert found["analysis"] == before["analysis"]
    assert heard == ["wake *"]
    (entry,) = (await audit.listing(db, AuditFilter(action="lanes.loaded"))).items
    assert (entry.actor, entry.kind, entry.name) == ("me", "lane", None)
    # The audit keeps the lanes before the load: loading those undoes it in one change.
    undone = await lanes.load(db, tuple(read_table(entry.before)), by="me")
    assert len(undone.changes) == 4
    assert {name: lane.job_types for name, lane in (await present(db)).items()} == {
        lane.name: lane.job_types for lane in SEEDED_LANES
    }
    assert (await db.run(store.read())).version > version


async def test_load_in_force_changes_and_records_nothing(db: Database) -> None:
    version = (await db.run(store.read())).version
    done = await lanes.load(db, preset("knowledge-graph"), by="me")
    assert done.changes == ()
    assert (await db.run(store.read())).version == version
    assert (await audit.listing(db, AuditFilter(action="lanes.loaded"))).items == []


async def test_dry_run_shows_changes_and_makes_none(db: Database) -> None:
    before = await present(db)
    planned = await lanes.load(db, preset("plain"), by="me", dry_run=True)
    assert planned.dry_run
    assert await present(db) == before
    done = await lanes.load(db, preset("plain"), by="me")
    assert done.changes == planned.changes
    assert {each.name: each.action for each in done.changes} == dict.fromkeys(
        ("interactive", "maintenance", "system"), "changed"
    )
    assert all(not lane.job_types for lane in (await present(db)).values())


async def test_lane_with_jobs_is_drained_and_deleted_by_a_later_load(
    db: Database, factory: JobFactory
) -> None:
    running = factory.running("projection")
    waiting = factory.submit("restore", delay=3600.0)
    done = await lanes.load(db, tuple(read_table({"docs": {"job_types": ["ingestion"]}})), by="me")
    actions = {each.name: (each.action, each.reason) for each in done.changes}
    assert actions == {
        "docs": ("created", None),
        "interactive": ("deleted", None),
        "maintenance": ("drained", "a job runs in it"),
        "system": ("drained", "jobs of restore wait in it"),
    }
    found = await present(db)
    assert not found["maintenance"].enabled
    assert not found["system"].enabled
    assert "restore" in found["system"].job_types
    factory.settle(running)
    factory.conn.execute("delete from laneway.delayed")
    assert waiting is not None
    again = await lanes.load(db, tuple(read_table({"docs": {"job_types": ["ingestion"]}})), by="me")
    assert {each.name: each.action for each in again.changes} == {
        "maintenance": "deleted",
        "system": "deleted",
    }


async def test_lane_is_rolled_back_after_a_load(db: Database) -> None:
    await lanes.load(db, preset("plain"), by="me")
    change = await history.rollback(db, "lane", "interactive", by="me")
    assert change is not None
    assert (await present(db))["interactive"].job_types == ("ingestion", "ingest_image", "polarity")


async def test_set_that_contradicts_itself_changes_nothing(db: Database) -> None:
    before = await present(db)
    with pytest.raises(InvalidInput, match="twice"):
        await lanes.load(db, (Lane("a"), Lane("a")), by="me")
    assert await present(db) == before


async def test_types_swap_lanes_in_one_load(db: Database) -> None:
    swapped = {
        "interactive": {"job_types": ["restore"]},
        "system": {"job_types": ["ingestion"]},
        "maintenance": {"job_types": ["projection"]},
    }
    await lanes.load(db, tuple(read_table(swapped)), by="me")
    found = await present(db)
    assert found["interactive"].job_types == ("restore",)
    assert found["system"].job_types == ("ingestion",)
