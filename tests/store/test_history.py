"""The history of the control plane: every change is kept, whoever makes it, and can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from laneway.domain.change import Change
from laneway.domain.lane import Lane
from laneway.domain.limit import SEEDED_LIMITS, Limit
from laneway.store import history, lanes, limits
from laneway.store.history import RollbackAnswer
from tests.conftest import Server
from tests.store.desk import Desk

KINDS = ("lane", "limit", "schedule", "gate")
SCHEDULE = (
    "insert into laneway.schedules (name, job_type, cron, updated_by)"
    " values ('n', 't', '0 3 * * *', 'ann')"
)


@pytest.fixture
def desk(dsn: str) -> Iterator[Desk]:
    """A desk at a control plane that nobody has changed yet."""
    with Desk(dsn) as desk:
        desk.do("delete from laneway.limits")
        for limit in SEEDED_LIMITS:
            desk.run(limits.create(limit, "laneway"))
        desk.do("delete from laneway.schedules")
        desk.do("delete from laneway.frozen_lanes")
        desk.do("truncate laneway.control_history")
        yield desk


def kept(desk: Desk, *kinds: str, name: str | None = None) -> list[Change]:
    """Oldest first."""
    return desk.run(history.listing(kinds or KINDS, name))[::-1]


def told(change: Change) -> tuple[object, ...]:
    return (change.kind, change.name, change.verb, change.differences)


def roll_back(desk: Desk, kind: str, name: str, to: int | None = None) -> RollbackAnswer:
    return desk.run(history.roll_back(kind, name, to, "bob"))


def knows(desk: Desk, job_type: str) -> None:
    """Makes the desk's worker a live one that has a handler of the type."""
    desk.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (%s, 'w', 'h', 1, '0', %s, 1)",
        desk.worker,
        [job_type],
    )


def limit_of(desk: Desk, name: str) -> Limit | None:
    loads = desk.run(limits.read(10, name))
    return loads[0].limit if loads else None


# -- kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement,wanted",
    [
        ("insert into laneway.worker_lanes (name) values ('new')", ("lane", "new", "created", {})),
        (
            "update laneway.worker_lanes set max_slots = 7, enabled = false where name = 'system'",
            ("lane", "system", "changed", {"max_slots": (1, 7), "enabled": (True, False)}),
        ),
        ("delete from laneway.worker_lanes where name = 'system'",
         ("lane", "system", "deleted", {})),
        (
            "insert into laneway.limits (name, max_concurrent) values ('gpu', 2)",
            ("limit", "gpu", "created", {}),
        ),
        (
            "update laneway.limits set rate_count = 60, rate_period_s = 60 where name = 'openai'",
            ("limit", "openai", "changed", {"rate_count": (None, 60), "rate_period_s": (None, 60)}),
        ),
        ("delete from laneway.limits where name = 'openai'", ("limit", "openai", "deleted", {})),
        (SCHEDULE, ("schedule", "n", "created", {})),
    ],
)  # fmt: skip
def test_plain_sql_is_kept_like_any_other_door(
    desk: Desk, statement: str, wanted: tuple[object, ...]
) -> None:
    desk.do(statement)
    assert [told(change) for change in kept(desk)] == [wanted]


def test_changes_and_deletions_of_a_schedule_are_kept(desk: Desk) -> None:
    desk.do(SCHEDULE)
    desk.do("update laneway.schedules set cron = '0 4 * * *'")
    desk.do("delete from laneway.schedules")
    _, changed, deleted = kept(desk, "schedule")
    assert changed.differences == {"cron": ("0 3 * * *", "0 4 * * *")}
    assert deleted.verb == "deleted"
    assert deleted.before is not None
    assert deleted.before["job_type"] == "t"


def test_the_pause_gate_is_kept_and_a_mere_version_is_not(desk: Desk) -> None:
    desk.do("update laneway.control set paused = true, paused_by = 'ann'")
    desk.do("update laneway.control set version = version + 1")
    (change,) = kept(desk)
    assert (change.kind, change.name, change.by) == ("gate", "pause", "ann")
    assert change.differences["paused"] == (False, True)


def test_a_change_of_nothing_is_not_kept(desk: Desk) -> None:
    desk.do("update laneway.worker_lanes set max_slots = max_slots, updated_by = 'ann'")
    desk.do("update laneway.limits set max_concurrent = max_concurrent")
    assert kept(desk) == []


def test_one_statement_on_many_rows_is_as_many_changes(desk: Desk) -> None:
    desk.do("update laneway.limits set max_concurrent = 100")
    assert [change.name for change in kept(desk)] == ["anthropic", "ollama", "openai"]


def test_what_is_rolled_back_by_the_database_was_never_changed(desk: Desk) -> None:
    desk.begin()
    desk.do("delete from laneway.limits")
    desk.rollback()
    assert kept(desk) == []


# -- who ----------------------------------------------------------------------------------------


def test_a_door_that_says_who_is_believed_every_time(desk: Desk) -> None:
    desk.run(lanes.create(Lane("new"), "ann"))
    for slots in (2, 3):
        desk.run(lanes.tune("new", {"max_slots": slots}, "ann"))
    for lane in ("new", "system", "default"):
        desk.run(lanes.move_type(lane, "t", "ann"))
    for name in ("a", "b"):
        desk.run(lanes.adopt_type("new", name, "ann"))
    for paused in (True, False, True, False):
        desk.run(lanes.pause(paused, "ann"))
    desk.run(limits.create(Limit("gpu"), "ann"))
    for most in (2, 3):
        desk.run(limits.tune("gpu", {"max_concurrent": most}, "ann"))
    assert desk.run(limits.delete("gpu", "ann")).is_gone
    changes = kept(desk)
    assert {change.by for change in changes} == {"ann"}
    # A move is a change of two lanes, or of one where `default` is the other.
    assert len(changes) == 3 + 4 + 2 + 4 + 4


def test_whoever_says_nothing_is_the_login_and_not_the_one_before(desk: Desk) -> None:
    desk.run(lanes.tune("system", {"max_slots": 5}, "ann"))
    desk.do("update laneway.worker_lanes set max_slots = 6 where name = 'system'")
    desk.do(
        "update laneway.worker_lanes set max_slots = 7, updated_by = 'eve' where name = 'system'"
    )
    desk.do("delete from laneway.worker_lanes where name = 'system'")
    login = desk.one("select session_user::text")
    assert [change.by for change in kept(desk)] == ["ann", login, "eve", login]


def test_the_setting_of_one_statement_does_not_outlive_it(desk: Desk) -> None:
    desk.run(limits.tune("openai", {"max_concurrent": 5}, "ann"))
    desk.do("delete from laneway.limits where name = 'openai'")
    assert [change.by for change in kept(desk)] == ["ann", desk.one("select session_user::text")]


def test_who_may_change_lanes_cannot_write_history(desk: Desk, postgres: Server) -> None:
    role = "laneway_history_test"
    desk.begin()
    try:
        desk.do(f"create role {role} nologin")
        desk.do(f"grant usage on schema laneway to {role}")
        desk.do(f"grant select, update on laneway.worker_lanes, laneway.control to {role}")
        desk.do(f"set local role {role}")
        desk.do(
            "update laneway.worker_lanes set max_slots = 9, updated_by = 'ann'"
            " where name = 'system'"
        )
        for forbidden in (
            "insert into laneway.control_history (by, kind, name) values ('x', 'lane', 'y')",
            "delete from laneway.control_history",
            "select from laneway.control_history",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), desk.conn.transaction():
                desk.do(forbidden)
        desk.do("reset role")
        assert [change.by for change in kept(desk)] == ["ann"]
    finally:
        desk.rollback()


# -- the way back -------------------------------------------------------------------------------


def test_the_newest_change_is_undone_and_undoing_is_a_change(desk: Desk) -> None:
    desk.run(lanes.tune("system", {"max_slots": 5, "enabled": False}, "ann"))
    done = roll_back(desk, "lane", "system")
    lane = desk.run(lanes.read()).lanes["system"]
    assert (lane.max_slots, lane.enabled, lane.updated_by) == (1, True, "bob")
    newest = kept(desk)[-1]
    assert (done.answer, done.id, newest.by) == ("done", newest.id, "bob")
    assert newest.differences == {"max_slots": (5, 1), "enabled": (False, True)}
    roll_back(desk, "lane", "system")
    assert desk.run(lanes.read()).lanes["system"].max_slots == 5


def test_any_earlier_state_can_be_had_again(desk: Desk) -> None:
    for most in (10, 20, 30):
        desk.run(limits.tune("openai", {"max_concurrent": most}, "ann"))
    first, second, _ = kept(desk)
    for to, most in ((first.id, 10), (second.id, 20), (0, 8)):
        assert roll_back(desk, "limit", "openai", to).answer == "done"
        found = limit_of(desk, "openai")
        assert found is not None
        assert found.max_concurrent == most
    count = len(kept(desk))
    assert roll_back(desk, "limit", "openai", 0) == RollbackAnswer("same", None, None)
    assert len(kept(desk)) == count


@pytest.mark.parametrize(
    "kind,table,create",
    [
        ("lane", "worker_lanes", """
         insert into laneway.worker_lanes (name, job_types, max_slots, lease_seconds, enabled)
         values ('n', '{a,b}', null, 77, false)"""),
        ("limit", "limits", """
         insert into laneway.limits (name, max_concurrent, rate_count, rate_period_s, scope)
         values ('n', null, 10, 0.5, 'host')"""),
        ("schedule", "schedules", """
         insert into laneway.schedules (name, job_type, payload, cron, timezone, tags, priority)
         values ('n', 't', '{"a": [1.5, null, "é"]}', '* * * * *', 'Asia/Tokyo', '{x,y}', -4)"""),
    ],
)  # fmt: skip
def test_a_deletion_and_a_creation_are_undone(
    desk: Desk, kind: str, table: str, create: str
) -> None:
    row = (
        f"select to_jsonb(t) - '{{updated_at,updated_by}}'::text[] from laneway.{table} t"
        " where name = 'n'"
    )
    desk.do(create)
    before = desk.one(row)
    desk.do(f"delete from laneway.{table} where name = 'n'")
    assert roll_back(desk, kind, "n").answer == "done"
    assert desk.one(row) == before
    created = kept(desk, kind)[0]
    assert created.verb == "created"
    assert roll_back(desk, kind, "n", 0).answer == "done"
    assert desk.rows(row) == []
    assert roll_back(desk, kind, "n", 0).answer == "same"
    assert roll_back(desk, kind, "n", created.id).answer == "done"
    assert desk.one(row) == before
    assert {change.by for change in kept(desk, kind)[2:]} == {"bob"}


def test_settings_that_the_state_of_then_does_not_know_keep_their_value(desk: Desk) -> None:
    """As after an upgrade that added `lease_seconds` and dropped `colour`."""
    desk.run(lanes.tune("system", {"max_slots": 5, "lease_seconds": 99}, "ann"))
    desk.do(
        "update laneway.control_history"
        """ set before = before - 'lease_seconds' || '{"colour": "red"}'::jsonb"""
    )
    assert roll_back(desk, "lane", "system").answer == "done"
    lane = desk.run(lanes.read()).lanes["system"]
    assert (lane.max_slots, lane.lease_seconds) == (1, 99)


def test_a_state_without_a_new_setting_is_restored_with_its_default(desk: Desk) -> None:
    desk.run(limits.delete("openai", "ann"))
    desk.do("update laneway.control_history set before = before - 'scope'")
    assert roll_back(desk, "limit", "openai").answer == "done"
    found = limit_of(desk, "openai")
    assert found is not None
    assert (found.max_concurrent, found.scope) == (8, "cluster")


def test_what_has_no_history_has_no_way_back(desk: Desk) -> None:
    assert roll_back(desk, "lane", "system").answer == "no_change"
    assert roll_back(desk, "lane", "nobody").answer == "no_object"
    desk.run(limits.tune("openai", {"max_concurrent": 3}, "ann"))
    (change,) = kept(desk)
    assert roll_back(desk, "limit", "ollama", change.id).answer == "no_change"
    assert roll_back(desk, "limit", "openai", change.id + 1).answer == "no_change"


def test_a_lane_that_is_needed_is_not_deleted(desk: Desk) -> None:
    desk.run(lanes.create(Lane("new", ("fresh",)), "ann"))
    running = desk.running("fresh")
    refused = roll_back(desk, "lane", "new")
    assert (refused.answer, refused.hindrance) == ("needed", "a job is running in it")
    desk.settle(running, "finish")
    desk.do("insert into laneway.job_types (name) values ('fresh')")
    refused = roll_back(desk, "lane", "new")
    assert "in use (fresh)" in str(refused.hindrance)
    desk.run(lanes.move_type("default", "fresh", "ann"))
    created = kept(desk)[0]
    assert roll_back(desk, "lane", "new", 0).answer == "done"
    assert created.name not in desk.run(lanes.read()).lanes


def test_a_limit_that_is_needed_is_not_deleted(desk: Desk) -> None:
    desk.do("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    knows(desk, "chat")
    answer = desk.run(limits.delete("openai", "ann"))
    assert (answer.is_gone, answer.hindrance) == (False, "the handlers of chat need it")
    desk.do("insert into laneway.limit_usage values ('ollama', %s, 'h', 2)", desk.worker)
    assert desk.run(limits.delete("ollama", "ann")).hindrance == "it is held 2 times"
    assert kept(desk) == []


@pytest.mark.parametrize("state", ["stopped_at = now()", "seen_at = now() - interval '46 s'"])
def test_a_limit_that_only_history_names_is_deleted(desk: Desk, state: str) -> None:
    """Nothing ever unpublishes a type; workers that know it are gone, and so are its jobs."""
    desk.do("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    knows(desk, "chat")
    ended = desk.running("chat")
    desk.settle(ended, "finish")
    desk.do(f"update laneway.workers set {state}")
    assert desk.run(limits.delete("openai", "ann")).is_gone
    roll_back(desk, "limit", "openai")
    assert roll_back(desk, "limit", "openai").answer == "done"


@pytest.mark.parametrize(
    "place", ["ready", "delayed", "lease", "awaiting", "key_waiters", "pending"]
)
def test_a_limit_that_jobs_will_need_is_not_deleted(desk: Desk, place: str) -> None:
    """Though no worker that knows their type is there now."""
    desk.do("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    needs = {"awaiting": "approval", "pending": "analysis"}.get(place)
    if place == "key_waiters":
        for _ in range(2):
            desk.submit("chat", concurrency_key="k")
        desk.claimed(2, ["chat"])
        desk.do("delete from laneway.lease")
        desk.do("delete from laneway.limit_usage")
    else:
        desk.submit("chat", needs=needs, delay=60.0 if place == "delayed" else None)
    if place == "lease":
        desk.claimed(1, ["chat"])
    assert (
        desk.one(f"select count(*) from laneway.{'ready' if needs == 'analysis' else place}") == 1
    )
    assert desk.run(limits.delete("openai", "ann")).hindrance == "the handlers of chat need it"


def test_a_rollback_meets_the_rules_of_now(desk: Desk) -> None:
    """The job type went to another lane after the lane was deleted."""
    desk.do("delete from laneway.worker_lanes where name = 'interactive'")
    desk.run(lanes.move_type("system", "polarity", "ann"))
    with pytest.raises(Exception, match="polarity may be in one lane only, found in interactive"):
        roll_back(desk, "lane", "interactive")
    assert "interactive" not in desk.run(lanes.read()).lanes


@pytest.mark.parametrize("kind,name", [("limit", "openai"), ("schedule", "n")])
def test_a_rollback_waits_for_a_change_under_way_and_undoes_it(
    desk: Desk, other: Desk, kind: str, name: str
) -> None:
    desk.do(SCHEDULE)
    changes: dict[str, tuple[str, Any]] = {
        "limit": ("update laneway.limits set max_concurrent = 99 where name = 'openai'",
                  "select max_concurrent from laneway.limits where name = 'openai'"),
        "schedule": ("update laneway.schedules set cron = '1 1 1 1 1'",
                     "select cron from laneway.schedules"),
    }  # fmt: skip
    change, look = changes[kind]
    before = desk.one(look)
    other.begin()
    other.do(change)
    waiting = desk.later(lambda: roll_back(desk, kind, name))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).answer == "done"
    assert desk.one(look) == before


def test_a_rollback_is_told_to_the_workers(desk: Desk) -> None:
    desk.run(limits.tune("openai", {"max_concurrent": 3}, "ann"))
    version = desk.version()
    roll_back(desk, "limit", "openai")
    assert desk.version() > version


# -- reading ------------------------------------------------------------------------------------


def test_the_list_is_newest_first_in_pages(desk: Desk) -> None:
    for slots in range(2, 7):
        desk.run(lanes.tune("system", {"max_slots": slots}, "ann"))
    desk.run(limits.tune("openai", {"max_concurrent": 3}, "ann"))
    first = desk.run(history.listing(["lane"], "system", limit=2))
    rest = desk.run(history.listing(["lane"], "system", before=first[-1].id))
    assert [c.differences["max_slots"][1] for c in (*first, *rest)] == [6, 5, 4, 3, 2]
    assert len(desk.run(history.listing(KINDS))) == 6


def test_a_state_that_python_cannot_read_spoils_only_itself(desk: Desk) -> None:
    desk.do(SCHEDULE)
    # As a version before the check may have stored it.
    desk.do("set laneway.payload_checked = 'on'")
    desk.do(
        "update laneway.schedules set payload = jsonb_build_object('n', repeat('9', 5000)::numeric)"
    )
    _, odd = kept(desk, "schedule")
    assert odd.after is not None
    assert list(odd.after) == ["unreadable"]
