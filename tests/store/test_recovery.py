"""What people do to the tables behind our back is found and mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from laneway.config.settings import Settings
from laneway.control import health, jobs, repair
from laneway.control.health import Finding, HealthCheck
from laneway.domain.states import Status
from laneway.store import health as store
from laneway.store import leases, retention
from laneway.store.database import Database
from laneway.store.retention import LeaderTerm
from tests.store.desk import Desk
from tests.store.test_plans import spent

STATES = ("outcome", "lease", "ready", "delayed", "key_waiters", "awaiting")


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests recovery")
    yield database
    await database.close()


def recount(desk: Desk) -> int:
    epoch = desk.run(leases.watch(desk.worker, 600)).epoch
    assert epoch is not None
    return desk.run(retention.recount_usage(LeaderTerm(desk.worker, epoch)))


def test_a_deleted_lease_does_not_keep_its_slot(desk: Desk) -> None:
    desk.do("update laneway.worker_lanes set max_slots = 1 where name = 'default'")
    desk.running()
    desk.do("delete from laneway.lease")
    desk.submit()
    assert desk.claim().state == "full"
    assert recount(desk) == 1
    assert len(desk.claimed()) == 1
    assert desk.slots_agree()


def test_deleted_counters_do_not_let_too_many_run(desk: Desk) -> None:
    desk.do("update laneway.worker_lanes set max_slots = 3 where name = 'default'")
    for _ in range(6):
        desk.submit()
    assert len(desk.claimed()) == 3
    desk.do("delete from laneway.slot_usage")
    assert recount(desk) == 1
    assert desk.claim().state == "full"
    assert desk.slots_agree()


def test_counters_of_limits_follow_the_leases_again(desk: Desk) -> None:
    desk.do("insert into laneway.job_types (name, limits) values ('asks', '{openai}')")
    claim = desk.running("asks")
    for harm in ("delete from laneway.limit_usage", "update laneway.limit_usage set running = 7"):
        desk.do(harm)
        assert not desk.limits_agree()
        assert recount(desk) == 1
        assert desk.limits_agree()
    desk.settle(claim, "finish")
    assert desk.limits_agree()
    assert desk.slots_agree()


def test_counters_that_match_are_left_alone(desk: Desk) -> None:
    desk.running()
    # Also of a process that holds a limit outside of jobs.
    answer = desk.one(
        "select answer from laneway.hold_limits(%s, %s, 'box', '{openai}', 0, 600)",
        uuid4(),
        uuid4(),
    )
    assert answer == "granted"
    assert recount(desk) == 0


def test_only_the_leader_mends_counters(desk: Desk) -> None:
    desk.running()
    desk.do("delete from laneway.slot_usage")
    assert desk.run(retention.recount_usage(LeaderTerm(desk.worker, 1))) == 0
    assert not desk.slots_agree()


def test_an_end_that_waits_for_its_counter_is_counted_once(desk: Desk, other: Desk) -> None:
    first, second = desk.running(), desk.running()
    desk.do("update laneway.slot_usage set running = 5")
    desk.begin()
    desk.settle(first, "finish")
    # The counter is locked by the end of the first; the leases are counted behind that lock.
    mended = other.later(lambda: other.one("select laneway.recount()"))
    desk.await_blocked(other)
    desk.commit()
    assert mended.result() == 1
    assert desk.slots_agree()
    desk.settle(second, "finish")
    assert desk.slots_agree()


async def test_a_job_in_no_state_is_shown_found_and_mended(db: Database, desk: Desk) -> None:
    kept = desk.submit()
    lost = [desk.submit(unique_key="k"), desk.submit()]
    for table in STATES:
        desk.do(f"delete from laneway.{table} where seq = any (%s)", lost)
    shown = await jobs.show(db, desk.id_of(lost[0]))
    assert shown.status is Status.FAILED
    assert shown.error is not None
    assert shown.error.type == "Lost"
    assert "laneway db repair" in shown.error.message
    check = await health.check_lost(db)
    assert (check.finding, check.next) == (Finding.FAIL, "laneway db repair")
    assert check.message.startswith(f"2 jobs are in no state, the first is {desk.id_of(lost[0])}")
    assert await repair.repair(db, by="ann") == (0, 2)
    assert await repair.repair(db, by="ann") == (0, 0)
    ((who, after),) = desk.rows("select actor, after from laneway.audit where kind = 'database'")
    assert (who, after) == ("ann", {"jobs": [str(desk.id_of(seq)) for seq in lost]})
    assert (await health.check_lost(db)).finding is Finding.OK
    mended = await jobs.show(db, desk.id_of(lost[0]))
    assert mended.error is not None
    assert "`laneway db repair` ended it: retry it" in mended.error.message
    for seq in lost:
        assert desk.places(seq) == ["outcome"]
    # The key is free again, and a retry lets the job run.
    assert desk.places(desk.submit(unique_key="k")) == ["ready"]
    assert desk.retry(lost[1]).found_in == "failed"
    await asyncio.to_thread(desk.claimed)
    assert desk.row("lease", lost[1])["attempt"] > 1
    assert desk.places(kept) == ["lease"]


async def test_look_for_lost_jobs_is_bounded_and_says_so(db: Database, desk: Desk) -> None:
    kept, lost = _many_jobs(desk)
    newest = health.NEWEST_LOOK + health.PLACES * health.EACH_LOOK
    used = spent(desk, lambda: desk.run(store.find_lost(newest=100, places=4, each=50)))
    # Of each job its own row, twice, and one that says its state, or none in six tables.
    assert sum(used[table] for table in ("jobs", *STATES)) <= 3 * (100 + 4 * 50) + 200
    found = desk.run(store.find_lost(newest=100, places=4, each=50))
    assert not found.is_whole
    assert len(found.ids) >= 50
    check = await health.check_lost(db)
    assert check.finding is Finding.FAIL
    assert f"of {newest:,} looked at" not in check.message
    looked: list[int] = []
    assert await repair.repair(db, by="ann", on_look=looked.append) == (0, lost)
    assert await health.check_lost(db) == HealthCheck("jobs", Finding.OK, "every job has a state")
    desk.run(store.end_lost([kept]))
    assert desk.one("select count(*) from laneway.outcome where error ->> 'type' = 'Lost'") == lost


async def test_repair_looks_at_a_part_of_the_jobs_at_a_time(
    db: Database, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.control.repair.LOOK", 300)
    monkeypatch.setattr("laneway.control.repair.BATCH", 200)
    monkeypatch.setattr("laneway.control.health.NEWEST_LOOK", 100)
    _, lost = _many_jobs(desk)
    looked: list[int] = []
    assert await repair.repair(db, by="ann", on_look=looked.append) == (0, lost)
    assert looked == [300, 600, 900]
    check = await health.check_lost(db)
    assert check.message == "every job of 20,100 looked at, the newest and a sample, has a state"


def _many_jobs(desk: Desk) -> tuple[int, int]:
    """A thousand jobs of which the oldest 400 are lost; one that is not, and how many are."""
    desk.do("insert into laneway.jobs (seq, id, job_type, payload)"
            " select g, gen_random_uuid(), 't', '{}' from generate_series(1, 1000) g")  # fmt: skip
    desk.do("insert into laneway.ready (seq, job_type, rank)"
            " select seq, job_type, 0 from laneway.jobs where seq > 400")  # fmt: skip
    return 1000, 400
