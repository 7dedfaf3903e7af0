"""Laws of schedules in the database: one job per slot, whatever process fires it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.schedule import Schedule
from laneway.store import schedules
from laneway.store.schedules import Due, DueSchedules, Fired, SlotEntry
from tests.support.store_client import PAST_CHECKS, StoreClient

T0 = datetime(2026, 1, 1, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
FAR = datetime(2126, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_schedules(db: StoreClient) -> None:
    db.do("delete from laneway.schedules")
    db.do("delete from laneway.schedule_slots")
    db.do("delete from laneway.control_history")


def add(db: StoreClient, name: str = "nightly", next_at: datetime | None = T0, **more: Any) -> None:
    given = {"name": name, "job_type": "t", "cron": "0 * * * *", **more}
    assert db.run(schedules.create(Schedule.of(given), "me", DEFAULT_LIMITS))
    if next_at is not None:
        db.do("update laneway.schedule_state set next_at = %s where name = %s", next_at, name)


def change(db: StoreClient, name: str = "nightly", **changed: Any) -> None:
    assert db.run(schedules.change(name, changed, "me", DEFAULT_LIMITS))


def lead(db: StoreClient, holder: UUID | None = None) -> int:
    epoch = db.one("select laneway.take_leadership(%s, 60)", holder or db.worker)
    assert epoch is not None
    return int(epoch)


def look(db: StoreClient, *checks: str) -> DueSchedules:
    return db.run(schedules.find_due(db.worker, checks))


def fire(db: StoreClient, due: Due, *slots: datetime, epoch: int | None, **more: Any) -> Fired:
    entries = [SlotEntry(slot, more.pop("outcome", "submitted")) for slot in slots]
    next_at = more.pop("next_at", FAR)
    return db.run(schedules.fire(due, entries, next_at, db.worker, epoch, **more))


def outcomes(db: StoreClient) -> list[tuple[Any, ...]]:
    return db.rows("select slot, outcome from laneway.schedule_slots order by slot")


def jobs(db: StoreClient) -> int:
    return int(db.one("select count(*) from laneway.jobs"))


def state(db: StoreClient, column: str) -> Any:
    return db.one(f"select {column} from laneway.schedule_state where name = 'nightly'")


# -- who may serve what -------------------------------------------------------------------------


def test_only_leader_reads_due_schedules(db: StoreClient, other: StoreClient) -> None:
    add(db)
    add(db, "later", FAR)
    epoch = lead(db)
    shown = look(db)
    assert shown.epoch == epoch
    assert [due.name for due in shown.due] == ["nightly"]
    assert look(other)[1:] == (None, None, [])
    assert abs((shown.now - datetime.now(UTC)).total_seconds()) < 60


def test_wait_is_until_the_next_slot_of_those_one_may_serve(db: StoreClient) -> None:
    add(db, next_at=None)
    lead(db)
    db.do("update laneway.schedule_state set next_at = clock_timestamp() + interval '100 s'")
    shown = look(db)
    assert shown.due == []
    assert shown.wait_s is not None
    assert 60 < shown.wait_s <= 100


def test_schedule_without_a_plan_is_due_and_planned_once(db: StoreClient) -> None:
    add(db, next_at=None)
    lead(db)
    (due,) = look(db).due
    assert due.next_at is None
    db.run(schedules.plan("nightly", due.seen, FAR))
    db.run(schedules.plan("nightly", due.seen, FAR + HOUR))
    assert state(db, "next_at") == FAR
    assert look(db).due == []


@pytest.mark.parametrize("change", ["cron = '5 * * * *'", "timezone = 'UTC+0'", "enabled = false"])
def test_change_of_times_through_any_interface_drops_plan(db: StoreClient, change: str) -> None:
    add(db, timezone="Europe/Berlin")
    db.do("update laneway.schedules set payload = '{\"n\": 1}'")
    assert state(db, "next_at") == T0
    db.do(f"update laneway.schedules set {change}")
    assert state(db, "next_at") is None


def test_change_of_a_schedule_waits_for_no_claim_and_stops_none(
    db: StoreClient, other: StoreClient
) -> None:
    for each in (db, other):
        each.do("set lock_timeout = '1s'")
    first, second = db.submit(), db.submit()
    before = db.version()
    other.begin()
    assert [claim.seq for claim in other.claimed(1)] == [first]
    db.begin()
    add(db)
    change(db, cron="5 * * * *")
    other.commit()
    assert [claim.seq for claim in other.claimed(1)] == [second]
    db.commit()
    assert db.version() == before


@pytest.mark.parametrize(
    "statement",
    [
        "insert into laneway.schedules (name, job_type, cron) values ('new', 't', '@daily')",
        "update laneway.schedules set cron = '@daily'",
        "delete from laneway.schedules",
    ],
)
def test_change_through_any_interface_notifies_schedulers(
    db: StoreClient, other: StoreClient, statement: str
) -> None:
    add(db)
    other.do("listen laneway")
    db.do(statement)
    notice = next(other.conn.notifies(timeout=60))
    assert notice.payload == "schedules"


@pytest.mark.parametrize("payload", ["null", "[1]", '"x"', "1"])
def test_payload_is_object_through_any_interface(db: StoreClient, payload: str) -> None:
    """JSON's null would be no value at all to a rollback."""
    add(db)
    with pytest.raises(psycopg.errors.CheckViolation):
        db.do("update laneway.schedules set payload = %s::jsonb", payload)


def test_change_is_stored_with_actor(db: StoreClient) -> None:
    add(db)
    change(db, cron="5 * * * *")
    assert db.run(schedules.delete("nightly", "ann"))
    assert not db.run(schedules.delete("nightly", "ann"))
    kept = db.rows(
        "select by, before->>'cron', after->>'cron' from laneway.control_history order by id"
    )
    assert kept == [
        ("me", None, "0 * * * *"), ("me", "0 * * * *", "5 * * * *"), ("ann", "5 * * * *", None),
    ]  # fmt: skip


# -- one job per slot ---------------------------------------------------------------------------


def test_slot_becomes_job_with_settings_of_schedule(db: StoreClient) -> None:
    add(db, payload={"a": 1}, priority=7, max_retries=1, tags=["x"], workspace="w",
        concurrency_key="k")  # fmt: skip
    epoch = lead(db)
    (due,) = look(db).due
    assert fire(db, due, T0, epoch=epoch) == Fired("fired", 1, "t")
    row = db.rows(
        "select j.job_type, j.payload, j.priority, j.max_retries, j.tags, j.workspace,"
        " j.created_by, j.concurrency_key, s.slot, s.outcome, s.manual from laneway.jobs j"
        " join laneway.schedule_slots s on s.job_id = j.id"
    )
    assert row == [
        ("t", {"a": 1}, 7, 1, ["x"], "w", "schedule:nightly", "k", T0, "submitted", False)
    ]
    assert (state(db, "next_at"), state(db, "last_at")) == (FAR, T0)


def test_fired_slot_is_not_fired_again(db: StoreClient) -> None:
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    fire(db, due, T0, epoch=epoch)
    assert fire(db, due, T0, epoch=epoch).answer == "moved"
    # Even if the schedule were set back, as by a clock change.
    db.do("update laneway.schedule_state set next_at = %s", T0)
    assert fire(db, due, T0, T0 + HOUR, epoch=epoch) == Fired("fired", 1, "t")
    assert outcomes(db) == [(T0, "submitted"), (T0 + HOUR, "submitted")]
    assert jobs(db) == 2


def test_missed_slot_may_still_have_its_turn(db: StoreClient) -> None:
    """The clock was ahead when it was noted, and was set back since."""
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    for outcome in ("missed", "missed", "submitted", "missed", "submitted"):
        fire(db, due, T0, epoch=epoch, outcome=outcome)
        db.do("update laneway.schedule_state set next_at = %s", T0)
    assert outcomes(db) == [(T0, "submitted")]
    assert jobs(db) == 1


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
def test_slot_without_a_job_gets_none_later(db: StoreClient, outcome: str) -> None:
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    fire(db, due, T0, epoch=epoch, outcome=outcome)
    db.do("update laneway.schedule_state set next_at = %s", T0)
    assert fire(db, due, T0, epoch=epoch).taken == 0
    assert outcomes(db) == [(T0, outcome)]
    assert jobs(db) == 0


def test_former_leader_fires_nothing(db: StoreClient, other: StoreClient) -> None:
    add(db)
    old = lead(db)
    (due,) = look(db).due
    db.do("update laneway.leader set held_until = clock_timestamp() - interval '1 s'")
    assert fire(db, due, T0, epoch=old).answer == "fenced"
    new = lead(other)
    assert fire(db, due, T0, epoch=old).answer == "fenced"
    assert fire(db, due, T0, epoch=new).answer == "fenced"
    assert fire(other, due, T0, epoch=new).answer == "fired"
    assert jobs(db) == 1


def test_election_waits_for_firing_leader(db: StoreClient, other: StoreClient) -> None:
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    db.begin()
    fire(db, due, T0, epoch=epoch)
    taking = other.later(
        lambda: other.one("select laneway.take_leadership(%s, 60, %s)", other.worker, FAR)
    )
    db.await_blocked(other)
    db.commit()
    assert taking.result() == epoch + 1


def test_concurrent_change_voids_decision(db: StoreClient) -> None:
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    change(db, payload={"n": 1})
    assert fire(db, due, T0, epoch=epoch).answer == "changed"
    (due,) = look(db).due
    change(db, enabled=False)
    assert fire(db, due, T0, epoch=epoch).answer == "changed"
    db.run(schedules.delete("nightly", "me"))
    assert fire(db, due, T0, epoch=epoch).answer == "changed"
    assert jobs(db) == 0


def test_many_firers_at_once_make_one_job_per_slot(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    """All of them are leader of the same term, and each has read before any fired."""
    firers, rounds = [another() for _ in range(8)], 12
    add(db)
    epoch = lead(db)
    with ThreadPoolExecutor(len(firers)) as threads:
        for i in range(rounds):
            (due,) = look(db).due
            slots = [T0 + (2 * i) * HOUR, T0 + (2 * i + 1) * HOUR]
            entries = [SlotEntry(slot, "submitted") for slot in slots]
            attempt = schedules.fire(due, entries, slots[-1] + HOUR, db.worker, epoch)
            if i % 2:
                # Without the guard on the schedule's position, the key alone decides.
                attempt = schedules.fire(due, entries, due.next_at, db.worker, epoch)
            answers = list(threads.map(lambda d, a=attempt: d.run(a), firers))
            assert sum(answer.taken for answer in answers) == 2
            db.do("update laneway.schedule_state set next_at = %s", slots[-1] + HOUR)
    assert len(outcomes(db)) == 2 * rounds
    assert jobs(db) == 2 * rounds


@pytest.mark.parametrize("commits", [False, True])
def test_firer_killed_before_or_after_its_commit_leaves_one_job(
    db: StoreClient, other: StoreClient, another: Callable[[], StoreClient], commits: bool
) -> None:
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    doomed = another()
    doomed.worker = db.worker
    doomed.begin()
    assert fire(doomed, due, T0, epoch=epoch).answer == "fired"
    if commits:
        doomed.commit()
    other.one("select pg_terminate_backend(%s, 10000)", doomed.pid)
    with pytest.raises(psycopg.OperationalError):
        doomed.do("select 1")
    assert jobs(db) == int(commits)
    assert fire(db, due, T0, epoch=epoch).answer == ("moved" if commits else "fired")
    assert jobs(db) == 1
    assert outcomes(db) == [(T0, "submitted")]


@pytest.mark.parametrize("change", ["payload = '{}'", "cron = '@daily'"])
def test_open_change_of_schedule_blocks_no_other(
    db: StoreClient, other: StoreClient, change: str
) -> None:
    """The worker's other tasks would wait too, and all workers behind the leader's row."""
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    other.begin()
    other.do(f"update laneway.schedules set {change}")
    db.do("set lock_timeout = '1s'")
    assert fire(db, due, T0, epoch=epoch).answer == "busy"
    db.run(schedules.begin_check(due, db.worker, 10))
    db.run(schedules.plan("nightly", due.seen, T0))
    db.run(schedules.release_checks(db.worker))
    assert not db.run(schedules.stop("nightly", due.seen, "no"))
    other.do("rollback")
    assert fire(db, due, T0, epoch=epoch).answer == "fired"
    assert jobs(db) == 1


def test_job_that_cannot_be_submitted_fails_its_slot_and_no_other(db: StoreClient) -> None:
    add(db)
    db.do(PAST_CHECKS.format("update laneway.schedules set workspace = ''"))
    epoch = lead(db)
    (due,) = look(db).due
    assert fire(db, due, T0, epoch=epoch, next_at=T0 + HOUR).answer == "fired"
    assert db.rows("select outcome, job_id, note from laneway.schedule_slots") == [
        ("failed", None, "workspace: 1 to 128 bytes")
    ]
    assert state(db, "next_at") == T0 + HOUR
    assert state(db, "check_failures") == 0


# -- checks -------------------------------------------------------------------------------------


def checked(db: StoreClient, **more: Any) -> Due:
    add(db, check_name="is_full", **more)
    (due,) = look(db, "is_full").due
    return due


def begin(db: StoreClient, due: Due, lease_s: float = 60.0) -> bool:
    return bool(db.run(schedules.begin_check(due, db.worker, lease_s)))


def test_schedule_with_check_is_shown_to_workers_with_that_check(
    db: StoreClient, other: StoreClient
) -> None:
    add(db, check_name="is_full")
    lead(db)
    assert look(db).due == []
    assert [due.check_name for due in look(other, "is_full", "more").due] == ["is_full"]


def test_one_runs_the_check_at_a_time_and_only_its_answer_counts(
    db: StoreClient, other: StoreClient
) -> None:
    due = checked(db)
    assert begin(db, due)
    assert not begin(other, due)
    shown = look(other, "is_full")
    assert shown.due == []
    assert shown.wait_s is not None
    assert 30 < shown.wait_s <= 60
    assert fire(other, due, T0, epoch=None).answer == "fenced"
    assert fire(db, due, T0, epoch=None, outcome="skipped").answer == "fired"
    assert outcomes(db) == [(T0, "skipped")]
    assert jobs(db) == 0


def test_check_of_a_slot_that_had_its_turn_is_not_begun(
    db: StoreClient, other: StoreClient
) -> None:
    """The next slot would wait for a result that no longer counts."""
    due = checked(db)
    assert begin(other, due)
    assert fire(other, due, T0, epoch=None, next_at=T0 + HOUR).answer == "fired"
    assert not begin(db, due)
    (due,) = look(db, "is_full").due
    assert begin(db, due)


def test_concurrent_fires_create_one_job(db: StoreClient, other: StoreClient) -> None:
    """A caller without the schedule's row lock does not touch the next slot of the other."""
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    db.begin()
    db.do("select from laneway.schedules for no key update")
    other.begin()
    assert fire(other, due, T0, epoch=epoch).answer == "busy"
    db.do("set local lock_timeout = '1s'")
    assert fire(db, due, T0, epoch=epoch).answer == "fired"
    db.commit()
    other.rollback()


def test_silent_checker_is_replaced(db: StoreClient, other: StoreClient) -> None:
    due = checked(db)
    assert begin(db, due, 0.0)
    assert begin(other, due)
    assert fire(db, due, T0, epoch=None).answer == "fenced"
    assert fire(other, due, T0, epoch=None).answer == "fired"
    assert jobs(db) == 1


def test_leader_does_not_pass_over_a_check(db: StoreClient) -> None:
    due = checked(db)
    assert fire(db, due, T0, epoch=lead(db)).answer == "fenced"


def test_leaving_checker_releases_its_checks(db: StoreClient, other: StoreClient) -> None:
    due = checked(db)
    assert begin(db, due)
    db.run(schedules.release_checks(other.worker))
    assert not begin(other, due)
    db.run(schedules.release_checks(db.worker))
    assert begin(other, due)


def fail_check(db: StoreClient, slot: datetime) -> None:
    (due,) = look(db, "is_full").due
    assert begin(db, due)
    fired = fire(
        db, due, slot, epoch=None, outcome="failed", check_error="Boom: no", next_at=slot + HOUR
    )
    assert fired.answer == "fired"


def test_fifth_failure_in_a_row_disables_with_the_reason(db: StoreClient) -> None:
    add(db, check_name="is_full")
    for i in range(4):
        fail_check(db, T0 + i * HOUR)
    for outcome, failures in (("missed", 4), ("skipped", 0)):
        (due,) = look(db, "is_full").due
        begin(db, due)
        slot = T0 + (4 if outcome == "missed" else 5) * HOUR
        fire(db, due, slot, epoch=None, outcome=outcome, next_at=slot + HOUR)
        assert state(db, "check_failures") == failures
    for i in range(6, 11):
        assert db.one("select enabled from laneway.schedules")
        fail_check(db, T0 + i * HOUR)
    row = db.one("select enabled, error, updated_by from laneway.schedules")
    reason = "the check is_full failed 5 times in a row, the last time with Boom: no"
    assert row == (False, reason, "laneway")
    assert look(db, "is_full").due == []
    assert jobs(db) == 0
    kept = db.one(
        "select by, after->>'error' from laneway.control_history order by id desc limit 1"
    )
    assert kept == ("laneway", reason)
    db.do("update laneway.schedules set enabled = true")
    assert db.one("select error from laneway.schedules") is None
    assert (state(db, "next_at"), state(db, "check_failures")) == (None, 0)


# -- run now ------------------------------------------------------------------------------------


def test_run_now_takes_a_slot_of_its_own_and_leaves_the_plan(db: StoreClient) -> None:
    add(db, enabled=False, next_at=FAR, check_name="is_full")
    ran = [db.run(schedules.run_now("nightly", "ann", check=False)) for _ in range(3)]
    assert db.run(schedules.run_now("absent", "ann", check=False)) is None
    assert jobs(db) == 3
    rows = db.rows("select job_id, manual, note from laneway.schedule_slots order by slot")
    assert rows == [(each.job_id, True, "by ann") for each in ran if each]
    assert state(db, "next_at") == FAR


@pytest.mark.parametrize("outcome", ["submitted", "skipped"])
def test_run_now_with_the_check_asks_a_worker_that_knows_it(db: StoreClient, outcome: str) -> None:
    add(db, enabled=False, next_at=FAR, check_name="is_full")
    asked = db.run(schedules.run_now("nightly", "ann", check=True))
    assert asked is not None
    assert (asked.answer, jobs(db)) == ("asked", 0)
    (due,) = look(db, "is_full").due
    assert (due.asked_at, due.asked_by) == (asked.slot, "ann")
    assert begin(db, due)
    assert fire(db, due, asked.slot, epoch=None, manual=True, outcome=outcome).taken == 1
    assert db.one("select manual, outcome from laneway.schedule_slots") == (True, outcome)
    assert jobs(db) == (outcome == "submitted")
    assert (state(db, "next_at"), state(db, "asked_at")) == (FAR, None)
    assert look(db, "is_full").due == []


def test_slots_are_listed_newest_first_and_deleted_with_their_schedule(db: StoreClient) -> None:
    add(db)
    epoch = lead(db)
    (due,) = look(db).due
    fire(db, due, T0, T0 + HOUR, T0 + 2 * HOUR, epoch=epoch)
    listed = db.run(schedules.slots("nightly", 2))
    assert [each.slot for each in listed] == [T0 + 2 * HOUR, T0 + HOUR]
    older = db.run(schedules.slots("nightly", 9, before=listed[-1].slot))
    assert [each.slot for each in older] == [T0]
    (read,) = db.run(schedules.read("nightly"))
    assert read.schedule.last == listed[0]
    db.run(schedules.delete("nightly", "me"))
    assert outcomes(db) == []
    assert jobs(db) == 3


def test_stopped_schedule_has_reason(db: StoreClient) -> None:
    add(db)
    lead(db)
    (due,) = look(db).due
    assert not db.run(schedules.stop("nightly", due.seen - HOUR, "no"))
    assert db.run(schedules.stop("nightly", due.seen, "cron: no"))
    assert db.one("select enabled, error from laneway.schedules") == (False, "cron: no")
