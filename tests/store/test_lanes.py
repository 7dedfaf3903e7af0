"""Lanes: valid rows, and changes that apply at once through every interface."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from laneway.domain.lane import SEEDED_LANES, Lane
from laneway.errors import InvalidInput
from laneway.store import lanes
from tests.support.store_client import StoreClient


def test_first_migration_seeds_the_lanes_of_the_domain(db: StoreClient) -> None:
    stored = db.run(lanes.read()).lanes
    assert {
        name: replace(lane, updated_at=None, updated_by=None) for name, lane in stored.items()
    } == {lane.name: lane for lane in SEEDED_LANES}


@pytest.mark.parametrize("job_types", ["{polarity}", "{x,polarity,y}", "{x,x}"])
def test_job_type_is_in_one_lane_only(db: StoreClient, job_types: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.do("insert into laneway.worker_lanes (name, job_types) values ('new', %s)", job_types)
    assert refused.value.sqlstate == "LW001"
    assert "may be in one lane only" in str(refused.value)
    assert "new" not in db.run(lanes.read()).lanes


def test_refused_overlap_names_field_type_and_lanes(db: StoreClient) -> None:
    with pytest.raises(InvalidInput) as refused:
        db.run(lanes.create(Lane("new", ("polarity",)), "me"))
    assert refused.value.field == "job_types"
    assert refused.value.rule == "polarity may be in one lane only, found in interactive, new"


@pytest.mark.parametrize(
    "change",
    [
        "delete from laneway.worker_lanes where name = 'default'",
        "update laneway.worker_lanes set job_types = '{x}' where name = 'default'",
        "update laneway.worker_lanes set name = 'other' where name = 'default'",
        "delete from laneway.worker_lanes",
    ],
)
def test_default_lane_stays_and_takes_every_other_type(db: StoreClient, change: str) -> None:
    with pytest.raises(psycopg.Error, match="the lane default must exist") as refused:
        db.do(change)
    assert refused.value.sqlstate == "LW001"


@pytest.mark.parametrize(
    "column, value",
    [
        ("max_slots", "-1"),
        ("max_slots", "10001"),
        ("poll_interval_ms", "99"),
        ("poll_interval_ms", "120001"),
        ("poll_interval_ms", "null"),
        ("stale_timeout_minutes", "0"),
        ("stale_timeout_minutes", "1441"),
        ("lease_seconds", "1"),
        ("lease_seconds", "3601"),
        ("enabled", "null"),
        ("job_types", "null"),
        ("name", "''"),
        ("name", "'Upper'"),
        ("name", "'1st'"),
        ("name", "'sp ace'"),
        ("name", "E'new\\nline'"),
        ("name", "repeat('a', 64)"),
    ],
)
def test_value_out_of_range_is_refused(db: StoreClient, column: str, value: str) -> None:
    with pytest.raises(psycopg.IntegrityError):
        db.do(f"update laneway.worker_lanes set {column} = {value} where name = 'system'")


@pytest.mark.parametrize(
    "column, value",
    [
        ("max_slots", "0"),
        ("max_slots", "10000"),
        ("max_slots", "null"),
        ("poll_interval_ms", "100"),
        ("poll_interval_ms", "120000"),
        ("stale_timeout_minutes", "1"),
        ("stale_timeout_minutes", "1440"),
        ("lease_seconds", "2"),
        ("lease_seconds", "3600"),
        ("name", "repeat('a', 63)"),
        ("name", "'a.b-c_9'"),
    ],
)
def test_ends_of_each_range_are_allowed(db: StoreClient, column: str, value: str) -> None:
    db.do(f"update laneway.worker_lanes set {column} = {value} where name = 'system'")


@pytest.mark.parametrize(
    "change",
    [
        "update laneway.worker_lanes set max_slots = 7 where name = 'system'",
        "insert into laneway.worker_lanes (name) values ('new')",
        "delete from laneway.worker_lanes where name = 'system'",
        "update laneway.control set paused = true",
    ],
)
def test_plain_change_raises_the_version(db: StoreClient, change: str) -> None:
    before = db.version()
    db.do(change)
    assert db.version() == before + 1
    db.do("update laneway.control set paused = false")


def test_change_stamps_its_time_and_a_new_lane_has_the_defaults(db: StoreClient) -> None:
    db.do("insert into laneway.worker_lanes (name) values ('new')")
    lane = db.run(lanes.read()).lanes["new"]
    defaults = replace(lane, updated_at=None, updated_by=None)
    assert defaults == Lane("new", (), 1, 5000, 30, 30, True)
    db.do("update laneway.worker_lanes set updated_at = '2000-01-01' where name = 'new'")
    after = db.run(lanes.read()).lanes["new"].updated_at
    assert after is not None
    assert lane.updated_at is not None
    assert after > lane.updated_at


def test_lane_is_created_once_and_never_overwritten(db: StoreClient) -> None:
    assert db.run(lanes.create(Lane("new", max_slots=4), "me")) is True
    assert db.run(lanes.create(Lane("new", max_slots=9), "you")) is None
    assert db.run(lanes.read()).lanes["new"].max_slots == 4


def test_tuning_changes_only_named_columns(db: StoreClient) -> None:
    before = db.run(lanes.read()).lanes["system"]
    after = db.run(lanes.tune("system", {"max_slots": None, "enabled": False}, "ann"))
    assert after is not None
    assert after.updated_by == "ann"
    assert replace(after, updated_at=None, updated_by=None) == replace(
        before, max_slots=None, enabled=False, updated_at=None, updated_by=None
    )
    assert db.run(lanes.tune("nowhere", {"max_slots": 1}, "ann")) is None


def test_type_that_moves_takes_its_waiting_jobs_along_at_once(db: StoreClient) -> None:
    seq = db.submit("polarity")
    running = db.running("ingestion")
    changed = db.run(lanes.move_type("system", "polarity", "me"))
    assert sorted(changed) == ["interactive", "system"]
    assert db.run(lanes.read()).lane_of("polarity") == "system"
    assert [c.seq for c in db.claimed(types=["polarity"], lane="system")] == [seq]
    db.run(lanes.move_type("default", "ingestion", "me"))
    assert db.one("select laneway.lane_of('ingestion')") == "default"
    assert db.row("lease", running.seq)["lane"] == "interactive", "what runs stays where it is"
    db.settle(running, "release")
    assert [c.seq for c in db.claimed(types=["ingestion"])] == [running.seq]
    assert db.slots_agree()


def test_type_is_assigned_by_workers_of_earlier_versions(db: StoreClient) -> None:
    def adopt(lane: str, job_type: str) -> bool:
        return bool(db.one("select laneway.adopt_type(%s, %s, 'me')", lane, job_type))

    assert not adopt("system", "polarity")
    assert adopt("system", "fresh")
    assert not adopt("default", "plain")
    assert not adopt("nowhere", "lost")
    state = db.run(lanes.read())
    assert state.lane_of("polarity") == "interactive"
    assert state.lane_of("fresh") == "system"
    assert state.lane_of("plain") == state.lane_of("lost") == "default"
    version = db.version()
    assert not adopt("interactive", "fresh")
    assert db.version() == version, "nothing changed, so the version stays"


def test_types_and_their_missing_lanes_are_assigned_in_one_change(db: StoreClient) -> None:
    version = db.version()
    given = [("system", "polarity"), ("system", "fresh"), ("default", "plain"), ("video", "cut"),
             ("audio", "mix"), ("video", "join"), ("audio", "cut"), ("empty", None)]  # fmt: skip
    assert db.run(lanes.assign_types(given, "me")) == ["audio", "empty", "video"]
    state = db.run(lanes.read())
    assert db.version() == version + 2, "once for the lanes, once for their types"
    assert state.lane_of("polarity") == "interactive", "a row that has it wins"
    assert state.lane_of("plain") == "default"
    assert (state.lanes["video"].job_types, state.lanes["audio"].job_types) == (
        ("cut", "join"),
        ("mix",),
    )
    assert (state.lanes["video"].max_slots, state.lanes["video"].updated_by) == (1, "me")
    assert db.run(lanes.assign_types(given, "you")) == []
    assert db.version() == version + 2, "nothing changed, so the version stays"


@pytest.mark.parametrize("second", ["system", "maintenance"])
def test_workers_that_start_together_assign_types_once(
    db: StoreClient, other: StoreClient, second: str
) -> None:
    other.begin()
    other.run(lanes.assign_types([("system", "fresh"), ("new", "first")], "one"))
    waiting = db.later(
        lambda: db.run(lanes.assign_types([(second, "fresh"), ("new", "second")], "two"))
    )
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) == []
    state = db.run(lanes.read())
    assert state.lane_of("fresh") == "system"
    assert state.lanes["new"].job_types == ("first", "second")


def test_many_changes_at_once_are_all_kept(another: Callable[[], StoreClient]) -> None:
    clients = [another() for _ in range(4)]

    def add(db: StoreClient, n: int) -> None:
        for i in range(5):
            db.run(lanes.create(Lane(f"n{n}_{i}"), "me"))
            db.run(lanes.assign_types([(f"n{n}_{i}", f"type{n}_{i}")], "me"))
            db.run(lanes.tune("system", {"max_slots": n}, "me"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, clients, range(4)))
    state = clients[0].run(lanes.read())
    assert all(state.lane_of(f"type{n}_{i}") == f"n{n}_{i}" for n in range(4) for i in range(5))


def test_lane_that_is_gone_leaves_no_job_stuck(db: StoreClient) -> None:
    claim = db.running("polarity")
    db.do("delete from laneway.worker_lanes where name = 'interactive'")
    assert db.settle(claim, "release") is not None
    assert [c.seq for c in db.claimed(types=["polarity"])] == [claim.seq]
    assert db.slots_agree()


def test_measures_agree_with_the_tables(db: StoreClient) -> None:
    for job_type, count in (("t", 3), ("u", 7), ("polarity", 2)):
        for _ in range(count):
            db.submit(job_type)
    db.running("ingestion", priority=99)
    db.do("update laneway.ready set ready_at = ready_at - interval '5 s' where job_type = 'u'")
    loads = {(m.lane, m.job_type): m for m in db.run(lanes.measure(bound=5))}
    assert {key: m.depth for key, m in loads.items()} == {
        ("default", "t"): 3,
        ("default", "u"): 5,
        ("interactive", "polarity"): 2,
        ("analysis", None): None,
        ("maintenance", None): None,
        ("system", None): None,
    }
    assert [key for key, m in loads.items() if m.is_capped] == [("default", "u")]
    assert loads["interactive", "polarity"].running == 1
    oldest = loads["default", "u"].oldest_s
    assert isinstance(oldest, float)
    assert oldest >= 5
    (active,) = db.run(lanes.active())
    assert (active.lane, active.job_type, active.attempt) == ("interactive", "ingestion", 1)
    assert isinstance(active.held_s, float)
