"""Laws of schedules in the database: one job per slot, whoever fires and whatever happens."""

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
from tests.store.desk import PAST_CHECKS, Desk

T0 = datetime(2026, 1, 1, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
FAR = datetime(2126, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_schedules(desk: Desk) -> None:
    desk.do("delete from laneway.schedules")
    desk.do("delete from laneway.schedule_slots")
    desk.do("delete from laneway.control_history")


def add(desk: Desk, name: str = "nightly", next_at: datetime | None = T0, **more: Any) -> None:
    given = {"name": name, "job_type": "t", "cron": "0 * * * *", **more}
    assert desk.run(schedules.create(Schedule.of(given), "me", DEFAULT_LIMITS))
    if next_at is not None:
        desk.do("update laneway.schedule_state set next_at = %s where name = %s", next_at, name)


def change(desk: Desk, name: str = "nightly", **changed: Any) -> None:
    assert desk.run(schedules.change(name, changed, "me", DEFAULT_LIMITS))


def lead(desk: Desk, holder: UUID | None = None) -> int:
    epoch = desk.one("select laneway.lead(%s, 60)", holder or desk.worker)
    assert epoch is not None
    return int(epoch)


def look(desk: Desk, *checks: str) -> DueSchedules:
    return desk.run(schedules.find_due(desk.worker, checks))


def fire(desk: Desk, due: Due, *slots: datetime, epoch: int | None, **more: Any) -> Fired:
    entries = [SlotEntry(slot, more.pop("outcome", "submitted")) for slot in slots]
    next_at = more.pop("next_at", FAR)
    return desk.run(schedules.fire(due, entries, next_at, desk.worker, epoch, **more))


def outcomes(desk: Desk) -> list[tuple[Any, ...]]:
    return desk.rows("select slot, outcome from laneway.schedule_slots order by slot")


def jobs(desk: Desk) -> int:
    return int(desk.one("select count(*) from laneway.jobs"))


def state(desk: Desk, column: str) -> Any:
    return desk.one(f"select {column} from laneway.schedule_state where name = 'nightly'")


# -- who may serve what -------------------------------------------------------------------------


def test_only_the_leader_is_shown_what_is_due(desk: Desk, other: Desk) -> None:
    add(desk)
    add(desk, "later", FAR)
    epoch = lead(desk)
    shown = look(desk)
    assert shown.epoch == epoch
    assert [due.name for due in shown.due] == ["nightly"]
    assert look(other)[1:] == (None, None, [])
    assert abs((shown.now - datetime.now(UTC)).total_seconds()) < 60


def test_the_wait_is_until_the_next_slot_of_those_one_may_serve(desk: Desk) -> None:
    add(desk, next_at=None)
    lead(desk)
    desk.do("update laneway.schedule_state set next_at = clock_timestamp() + interval '100 s'")
    shown = look(desk)
    assert shown.due == []
    assert shown.wait_s is not None
    assert 60 < shown.wait_s <= 100


def test_a_schedule_without_a_plan_is_due_and_planned_once(desk: Desk) -> None:
    add(desk, next_at=None)
    lead(desk)
    (due,) = look(desk).due
    assert due.next_at is None
    desk.run(schedules.plan("nightly", due.seen, FAR))
    desk.run(schedules.plan("nightly", due.seen, FAR + HOUR))
    assert state(desk, "next_at") == FAR
    assert look(desk).due == []


@pytest.mark.parametrize("change", ["cron = '5 * * * *'", "timezone = 'UTC+0'", "enabled = false"])
def test_a_change_of_its_times_by_any_door_takes_its_plan(desk: Desk, change: str) -> None:
    add(desk, timezone="Europe/Berlin")
    desk.do("update laneway.schedules set payload = '{\"n\": 1}'")
    assert state(desk, "next_at") == T0
    desk.do(f"update laneway.schedules set {change}")
    assert state(desk, "next_at") is None


def test_a_change_of_a_schedule_waits_for_no_claim_and_stops_none(desk: Desk, other: Desk) -> None:
    for each in (desk, other):
        each.do("set lock_timeout = '1s'")
    first, second = desk.submit(), desk.submit()
    before = desk.version()
    other.begin()
    assert [claim.seq for claim in other.claimed(1)] == [first]
    desk.begin()
    add(desk)
    change(desk, cron="5 * * * *")
    other.commit()
    assert [claim.seq for claim in other.claimed(1)] == [second]
    desk.commit()
    assert desk.version() == before


@pytest.mark.parametrize(
    "statement",
    [
        "insert into laneway.schedules (name, job_type, cron) values ('new', 't', '@daily')",
        "update laneway.schedules set cron = '@daily'",
        "delete from laneway.schedules",
    ],
)
def test_a_change_by_any_door_is_told_to_schedulers(
    desk: Desk, other: Desk, statement: str
) -> None:
    add(desk)
    other.do("listen laneway")
    desk.do(statement)
    notice = next(other.conn.notifies(timeout=60))
    assert notice.payload == "schedules"


@pytest.mark.parametrize("payload", ["null", "[1]", '"x"', "1"])
def test_a_payload_is_an_object_through_any_door(desk: Desk, payload: str) -> None:
    """JSON's null would be no value at all to a rollback."""
    add(desk)
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.do("update laneway.schedules set payload = %s::jsonb", payload)


def test_a_change_is_kept_with_who(desk: Desk) -> None:
    add(desk)
    change(desk, cron="5 * * * *")
    assert desk.run(schedules.delete("nightly", "ann"))
    assert not desk.run(schedules.delete("nightly", "ann"))
    kept = desk.rows(
        "select by, before->>'cron', after->>'cron' from laneway.control_history order by id"
    )
    assert kept == [
        ("me", None, "0 * * * *"), ("me", "0 * * * *", "5 * * * *"), ("ann", "5 * * * *", None),
    ]  # fmt: skip


# -- one job per slot ---------------------------------------------------------------------------


def test_a_slot_becomes_a_job_with_what_the_schedule_says(desk: Desk) -> None:
    add(desk, payload={"a": 1}, priority=7, max_retries=1, tags=["x"], workspace="w",
        concurrency_key="k")  # fmt: skip
    epoch = lead(desk)
    (due,) = look(desk).due
    assert fire(desk, due, T0, epoch=epoch) == Fired("fired", 1, "t")
    row = desk.rows(
        "select j.job_type, j.payload, j.priority, j.max_retries, j.tags, j.workspace,"
        " j.created_by, j.concurrency_key, s.slot, s.outcome, s.manual from laneway.jobs j"
        " join laneway.schedule_slots s on s.job_id = j.id"
    )
    assert row == [
        ("t", {"a": 1}, 7, 1, ["x"], "w", "schedule:nightly", "k", T0, "submitted", False)
    ]
    assert (state(desk, "next_at"), state(desk, "last_at")) == (FAR, T0)


def test_what_was_fired_is_not_fired_again(desk: Desk) -> None:
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    fire(desk, due, T0, epoch=epoch)
    assert fire(desk, due, T0, epoch=epoch).answer == "moved"
    # Even if the schedule were set back, as by a clock that was.
    desk.do("update laneway.schedule_state set next_at = %s", T0)
    assert fire(desk, due, T0, T0 + HOUR, epoch=epoch) == Fired("fired", 1, "t")
    assert outcomes(desk) == [(T0, "submitted"), (T0 + HOUR, "submitted")]
    assert jobs(desk) == 2


def test_a_missed_slot_may_still_have_its_turn(desk: Desk) -> None:
    """The clock was ahead when it was noted, and was set back since."""
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    for outcome in ("missed", "missed", "submitted", "missed", "submitted"):
        fire(desk, due, T0, epoch=epoch, outcome=outcome)
        desk.do("update laneway.schedule_state set next_at = %s", T0)
    assert outcomes(desk) == [(T0, "submitted")]
    assert jobs(desk) == 1


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
def test_a_slot_without_a_job_gets_none_later(desk: Desk, outcome: str) -> None:
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    fire(desk, due, T0, epoch=epoch, outcome=outcome)
    desk.do("update laneway.schedule_state set next_at = %s", T0)
    assert fire(desk, due, T0, epoch=epoch).taken == 0
    assert outcomes(desk) == [(T0, outcome)]
    assert jobs(desk) == 0


def test_a_former_leader_fires_nothing(desk: Desk, other: Desk) -> None:
    add(desk)
    old = lead(desk)
    (due,) = look(desk).due
    desk.do("update laneway.leader set held_until = clock_timestamp() - interval '1 s'")
    assert fire(desk, due, T0, epoch=old).answer == "fenced"
    new = lead(other)
    assert fire(desk, due, T0, epoch=old).answer == "fenced"
    assert fire(desk, due, T0, epoch=new).answer == "fenced"
    assert fire(other, due, T0, epoch=new).answer == "fired"
    assert jobs(desk) == 1


def test_nobody_leads_while_a_leader_fires(desk: Desk, other: Desk) -> None:
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    desk.begin()
    fire(desk, due, T0, epoch=epoch)
    taking = other.later(lambda: other.one("select laneway.lead(%s, 60, %s)", other.worker, FAR))
    desk.await_blocked(other)
    desk.commit()
    assert taking.result() == epoch + 1


def test_a_change_meanwhile_voids_what_was_decided(desk: Desk) -> None:
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    change(desk, payload={"n": 1})
    assert fire(desk, due, T0, epoch=epoch).answer == "changed"
    (due,) = look(desk).due
    change(desk, enabled=False)
    assert fire(desk, due, T0, epoch=epoch).answer == "changed"
    desk.run(schedules.delete("nightly", "me"))
    assert fire(desk, due, T0, epoch=epoch).answer == "changed"
    assert jobs(desk) == 0


def test_many_firers_at_once_make_one_job_per_slot(desk: Desk, another: Callable[[], Desk]) -> None:
    """All of them hold the same right to fire, and each has looked before any fired."""
    firers, rounds = [another() for _ in range(8)], 12
    add(desk)
    epoch = lead(desk)
    with ThreadPoolExecutor(len(firers)) as threads:
        for i in range(rounds):
            (due,) = look(desk).due
            slots = [T0 + (2 * i) * HOUR, T0 + (2 * i + 1) * HOUR]
            entries = [SlotEntry(slot, "submitted") for slot in slots]
            attempt = schedules.fire(due, entries, slots[-1] + HOUR, desk.worker, epoch)
            if i % 2:
                # Without the guard of where the schedule stands, the key alone decides.
                attempt = schedules.fire(due, entries, due.next_at, desk.worker, epoch)
            answers = list(threads.map(lambda d, a=attempt: d.run(a), firers))
            assert sum(answer.taken for answer in answers) == 2
            desk.do("update laneway.schedule_state set next_at = %s", slots[-1] + HOUR)
    assert len(outcomes(desk)) == 2 * rounds
    assert jobs(desk) == 2 * rounds


@pytest.mark.parametrize("commits", [False, True])
def test_a_firer_killed_before_or_after_its_commit_leaves_one_job(
    desk: Desk, other: Desk, another: Callable[[], Desk], commits: bool
) -> None:
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    doomed = another()
    doomed.worker = desk.worker
    doomed.begin()
    assert fire(doomed, due, T0, epoch=epoch).answer == "fired"
    if commits:
        doomed.commit()
    other.one("select pg_terminate_backend(%s, 10000)", doomed.pid)
    with pytest.raises(psycopg.OperationalError):
        doomed.do("select 1")
    assert jobs(desk) == int(commits)
    assert fire(desk, due, T0, epoch=epoch).answer == ("moved" if commits else "fired")
    assert jobs(desk) == 1
    assert outcomes(desk) == [(T0, "submitted")]


@pytest.mark.parametrize("change", ["payload = '{}'", "cron = '@daily'"])
def test_nobody_waits_for_one_who_changes_a_schedule(desk: Desk, other: Desk, change: str) -> None:
    """The worker's other duties would wait with it, and behind the leader's row all workers'."""
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    other.begin()
    other.do(f"update laneway.schedules set {change}")
    desk.do("set lock_timeout = '1s'")
    assert fire(desk, due, T0, epoch=epoch).answer == "busy"
    desk.run(schedules.begin_check(due, desk.worker, 10))
    desk.run(schedules.plan("nightly", due.seen, T0))
    desk.run(schedules.release_checks(desk.worker))
    assert not desk.run(schedules.stop("nightly", due.seen, "no"))
    other.do("rollback")
    assert fire(desk, due, T0, epoch=epoch).answer == "fired"
    assert jobs(desk) == 1


def test_a_job_that_cannot_be_submitted_fails_its_slot_and_no_other(desk: Desk) -> None:
    add(desk)
    desk.do(PAST_CHECKS.format("update laneway.schedules set workspace = ''"))
    epoch = lead(desk)
    (due,) = look(desk).due
    assert fire(desk, due, T0, epoch=epoch, next_at=T0 + HOUR).answer == "fired"
    assert desk.rows("select outcome, job_id, note from laneway.schedule_slots") == [
        ("failed", None, "workspace: 1 to 128 bytes")
    ]
    assert state(desk, "next_at") == T0 + HOUR
    assert state(desk, "check_failures") == 0


# -- checks -------------------------------------------------------------------------------------


def checked(desk: Desk, **more: Any) -> Due:
    add(desk, check_name="is_full", **more)
    (due,) = look(desk, "is_full").due
    return due


def begin(desk: Desk, due: Due, lease_s: float = 60.0) -> bool:
    return bool(desk.run(schedules.begin_check(due, desk.worker, lease_s)))


def test_a_schedule_with_a_check_is_shown_to_those_who_know_it(desk: Desk, other: Desk) -> None:
    add(desk, check_name="is_full")
    lead(desk)
    assert look(desk).due == []
    assert [due.check_name for due in look(other, "is_full", "more").due] == ["is_full"]


def test_one_runs_the_check_at_a_time_and_only_its_answer_counts(desk: Desk, other: Desk) -> None:
    due = checked(desk)
    assert begin(desk, due)
    assert not begin(other, due)
    shown = look(other, "is_full")
    assert shown.due == []
    assert shown.wait_s is not None
    assert 30 < shown.wait_s <= 60
    assert fire(other, due, T0, epoch=None).answer == "fenced"
    assert fire(desk, due, T0, epoch=None, outcome="skipped").answer == "fired"
    assert outcomes(desk) == [(T0, "skipped")]
    assert jobs(desk) == 0


def test_a_check_of_a_slot_that_had_its_turn_is_not_begun(desk: Desk, other: Desk) -> None:
    """It would keep the next slot waiting, for an answer that counts for nothing."""
    due = checked(desk)
    assert begin(other, due)
    assert fire(other, due, T0, epoch=None, next_at=T0 + HOUR).answer == "fired"
    assert not begin(desk, due)
    (due,) = look(desk, "is_full").due
    assert begin(desk, due)


def test_of_two_who_fire_at_once_one_does(desk: Desk, other: Desk) -> None:
    """Who misses the schedule's row leaves the other's next one alone."""
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    desk.begin()
    desk.do("select from laneway.schedules for no key update")
    other.begin()
    assert fire(other, due, T0, epoch=epoch).answer == "busy"
    desk.do("set local lock_timeout = '1s'")
    assert fire(desk, due, T0, epoch=epoch).answer == "fired"
    desk.commit()
    other.rollback()


def test_who_falls_silent_in_a_check_is_replaced(desk: Desk, other: Desk) -> None:
    due = checked(desk)
    assert begin(desk, due, 0.0)
    assert begin(other, due)
    assert fire(desk, due, T0, epoch=None).answer == "fenced"
    assert fire(other, due, T0, epoch=None).answer == "fired"
    assert jobs(desk) == 1


def test_a_leader_does_not_pass_over_a_check(desk: Desk) -> None:
    due = checked(desk)
    assert fire(desk, due, T0, epoch=lead(desk)).answer == "fenced"


def test_a_checker_who_leaves_gives_its_checks_back(desk: Desk, other: Desk) -> None:
    due = checked(desk)
    assert begin(desk, due)
    desk.run(schedules.release_checks(other.worker))
    assert not begin(other, due)
    desk.run(schedules.release_checks(desk.worker))
    assert begin(other, due)


def fail_check(desk: Desk, slot: datetime) -> None:
    (due,) = look(desk, "is_full").due
    assert begin(desk, due)
    fired = fire(
        desk, due, slot, epoch=None, outcome="failed", check_error="Boom: no", next_at=slot + HOUR
    )
    assert fired.answer == "fired"


def test_the_fifth_failure_in_a_row_disables_with_the_reason(desk: Desk) -> None:
    add(desk, check_name="is_full")
    for i in range(4):
        fail_check(desk, T0 + i * HOUR)
    for outcome, failures in (("missed", 4), ("skipped", 0)):
        (due,) = look(desk, "is_full").due
        begin(desk, due)
        slot = T0 + (4 if outcome == "missed" else 5) * HOUR
        fire(desk, due, slot, epoch=None, outcome=outcome, next_at=slot + HOUR)
        assert state(desk, "check_failures") == failures
    for i in range(6, 11):
        assert desk.one("select enabled from laneway.schedules")
        fail_check(desk, T0 + i * HOUR)
    row = desk.one("select enabled, error, updated_by from laneway.schedules")
    reason = "the check is_full failed 5 times in a row, the last time with Boom: no"
    assert row == (False, reason, "laneway")
    assert look(desk, "is_full").due == []
    assert jobs(desk) == 0
    kept = desk.one(
        "select by, after->>'error' from laneway.control_history order by id desc limit 1"
    )
    assert kept == ("laneway", reason)
    desk.do("update laneway.schedules set enabled = true")
    assert desk.one("select error from laneway.schedules") is None
    assert (state(desk, "next_at"), state(desk, "check_failures")) == (None, 0)


# -- run now ------------------------------------------------------------------------------------


def test_run_now_takes_a_slot_of_its_own_and_leaves_the_plan(desk: Desk) -> None:
    add(desk, enabled=False, next_at=FAR, check_name="is_full")
    ran = [desk.run(schedules.run_now("nightly", "ann", check=False)) for _ in range(3)]
    assert desk.run(schedules.run_now("nobody", "ann", check=False)) is None
    assert jobs(desk) == 3
    rows = desk.rows("select job_id, manual, note from laneway.schedule_slots order by slot")
    assert rows == [(each.job_id, True, "by ann") for each in ran if each]
    assert state(desk, "next_at") == FAR


@pytest.mark.parametrize("outcome", ["submitted", "skipped"])
def test_run_now_with_the_check_asks_a_worker_that_knows_it(desk: Desk, outcome: str) -> None:
    add(desk, enabled=False, next_at=FAR, check_name="is_full")
    asked = desk.run(schedules.run_now("nightly", "ann", check=True))
    assert asked is not None
    assert (asked.answer, jobs(desk)) == ("asked", 0)
    (due,) = look(desk, "is_full").due
    assert (due.asked_at, due.asked_by) == (asked.slot, "ann")
    assert begin(desk, due)
    assert fire(desk, due, asked.slot, epoch=None, manual=True, outcome=outcome).taken == 1
    assert desk.one("select manual, outcome from laneway.schedule_slots") == (True, outcome)
    assert jobs(desk) == (outcome == "submitted")
    assert (state(desk, "next_at"), state(desk, "asked_at")) == (FAR, None)
    assert look(desk, "is_full").due == []


def test_slots_are_listed_newest_first_and_deleted_with_their_schedule(desk: Desk) -> None:
    add(desk)
    epoch = lead(desk)
    (due,) = look(desk).due
    fire(desk, due, T0, T0 + HOUR, T0 + 2 * HOUR, epoch=epoch)
    listed = desk.run(schedules.slots("nightly", 2))
    assert [each.slot for each in listed] == [T0 + 2 * HOUR, T0 + HOUR]
    older = desk.run(schedules.slots("nightly", 9, before=listed[-1].slot))
    assert [each.slot for each in older] == [T0]
    (read,) = desk.run(schedules.read("nightly"))
    assert read.schedule.last == listed[0]
    desk.run(schedules.delete("nightly", "me"))
    assert outcomes(desk) == []
    assert jobs(desk) == 3


def test_a_stopped_schedule_says_why(desk: Desk) -> None:
    add(desk)
    lead(desk)
    (due,) = look(desk).due
    assert not desk.run(schedules.stop("nightly", due.seen - HOUR, "no"))
    assert desk.run(schedules.stop("nightly", due.seen, "cron: no"))
    assert desk.one("select enabled, error from laneway.schedules") == (False, "cron: no")
