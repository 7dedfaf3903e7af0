"""The history of the control plane: every change is recorded, and can be undone."""

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
from tests.support.store_client import StoreClient

KINDS = ("lane", "limit", "schedule", "gate")
SCHEDULE = (
    "insert into laneway.schedules (name, job_type, cron, updated_by)"
    " values ('n', 't', '0 3 * * *', 'ann')"
)


@pytest.fixture
def db(dsn: str) -> Iterator[StoreClient]:
    """A client with an unchanged control plane."""
    with StoreClient(dsn) as db:
        db.do("delete from laneway.limits")
        for limit in SEEDED_LIMITS:
            db.run(limits.create(limit, "laneway"))
        db.do("delete from laneway.schedules")
        db.do("delete from laneway.frozen_lanes")
        db.do("truncate laneway.control_history")
        yield db


def kept(db: StoreClient, *kinds: str, name: str | None = None) -> list[Change]:
    """Oldest first."""
    return db.run(history.listing(kinds or KINDS, name))[::-1]


def fields_of(change: Change) -> tuple[object, ...]:
    return (change.kind, change.name, change.verb, change.differences)


def roll_back(db: StoreClient, kind: str, name: str, to: int | None = None) -> RollbackAnswer:
    return db.run(history.roll_back(kind, name, to, "bob"))


def knows(db: StoreClient, job_type: str) -> None:
    """Register the client's worker as live, with a handler of the type."""
    db.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (%s, 'w', 'h', 1, '0', %s, 1)",
        db.worker,
        [job_type],
    )


def limit_of(db: StoreClient, name: str) -> Limit | None:
    loads = db.run(limits.read(10, name))
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
def test_change_by_plain_sql_is_audited(
    db: StoreClient, statement: str, wanted: tuple[object, ...]
) -> None:
    db.do(statement)
    assert [fields_of(change) for change in kept(db)] == [wanted]


def test_changes_and_deletions_of_a_schedule_are_kept(db: StoreClient) -> None:
    db.do(SCHEDULE)
    db.do("update laneway.schedules set cron = '0 4 * * *'")
    db.do("delete from laneway.schedules")
    _, changed, deleted = kept(db, "schedule")
    assert changed.differences == {"cron": ("0 3 * * *", "0 4 * * *")}
    assert deleted.verb == "deleted"
    assert deleted.before is not None
    assert deleted.before["job_type"] == "t"


def test_pause_gate_is_kept_and_a_mere_version_is_not(db: StoreClient) -> None:
    db.do("update laneway.control set paused = true, paused_by = 'ann'")
    db.do("update laneway.control set version = version + 1")
    (change,) = kept(db)
    assert (change.kind, change.name, change.by) == ("gate", "pause", "ann")
    assert change.differences["paused"] == (False, True)


def test_change_of_nothing_is_not_kept(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = max_slots, updated_by = 'ann'")
    db.do("update laneway.limits set max_concurrent = max_concurrent")
    assert kept(db) == []


def test_one_statement_on_many_rows_is_as_many_changes(db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = 100")
    assert [change.name for change in kept(db)] == ["anthropic", "ollama", "openai"]


def test_change_rolled_back_by_database_leaves_no_history(db: StoreClient) -> None:
    db.begin()
    db.do("delete from laneway.limits")
    db.rollback()
    assert kept(db) == []


# -- who ----------------------------------------------------------------------------------------


def test_actor_set_by_caller_is_used_every_time(db: StoreClient) -> None:
    db.run(lanes.create(Lane("new"), "ann"))
    for slots in (2, 3):
        db.run(lanes.tune("new", {"max_slots": slots}, "ann"))
    for lane in ("new", "system", "default"):
        db.run(lanes.move_type(lane, "t", "ann"))
    for name in ("a", "b"):
        db.run(lanes.assign_types([("new", name)], "ann"))
    for paused in (True, False, True, False):
        db.run(lanes.pause(paused, "ann"))
    db.run(limits.create(Limit("gpu"), "ann"))
    for most in (2, 3):
        db.run(limits.tune("gpu", {"max_concurrent": most}, "ann"))
    assert db.run(limits.delete("gpu", "ann")).is_gone
    changes = kept(db)
    assert {change.by for change in changes} == {"ann"}
    # A move is a change of two lanes, or of one where `default` is the other.
    assert len(changes) == 3 + 4 + 2 + 4 + 4


def test_actor_defaults_to_login_not_previous_actor(db: StoreClient) -> None:
    db.run(lanes.tune("system", {"max_slots": 5}, "ann"))
    db.do("update laneway.worker_lanes set max_slots = 6 where name = 'system'")
    db.do("update laneway.worker_lanes set max_slots = 7, updated_by = 'eve' where name = 'system'")
    db.do("delete from laneway.worker_lanes where name = 'system'")
    login = db.one("select session_user::text")
    assert [change.by for change in kept(db)] == ["ann", login, "eve", login]


def test_setting_of_one_statement_does_not_outlive_it(db: StoreClient) -> None:
    db.run(limits.tune("openai", {"max_concurrent": 5}, "ann"))
    db.do("delete from laneway.limits where name = 'openai'")
    assert [change.by for change in kept(db)] == ["ann", db.one("select session_user::text")]


def test_role_that_changes_lanes_cannot_write_history(db: StoreClient, postgres: Server) -> None:
    role = "laneway_history_test"
    db.begin()
    try:
        db.do(f"create role {role} nologin")
        db.do(f"grant usage on schema laneway to {role}")
        db.do(f"grant select, update on laneway.worker_lanes, laneway.control to {role}")
        db.do(f"set local role {role}")
        db.do(
            "update laneway.worker_lanes set max_slots = 9, updated_by = 'ann'"
            " where name = 'system'"
        )
        for forbidden in (
            "insert into laneway.control_history (by, kind, name) values ('x', 'lane', 'y')",
            "delete from laneway.control_history",
            "select from laneway.control_history",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), db.conn.transaction():
                db.do(forbidden)
        db.do("reset role")
        assert [change.by for change in kept(db)] == ["ann"]
    finally:
        db.rollback()


# -- the way back -------------------------------------------------------------------------------


def test_newest_change_is_undone_and_undoing_is_a_change(db: StoreClient) -> None:
    db.run(lanes.tune("system", {"max_slots": 5, "enabled": False}, "ann"))
    done = roll_back(db, "lane", "system")
    lane = db.run(lanes.read()).lanes["system"]
    assert (lane.max_slots, lane.enabled, lane.updated_by) == (1, True, "bob")
    newest = kept(db)[-1]
    assert (done.answer, done.id, newest.by) == ("done", newest.id, "bob")
    assert newest.differences == {"max_slots": (5, 1), "enabled": (False, True)}
    roll_back(db, "lane", "system")
    assert db.run(lanes.read()).lanes["system"].max_slots == 5


def test_any_earlier_state_can_be_had_again(db: StoreClient) -> None:
    for most in (10, 20, 30):
        db.run(limits.tune("openai", {"max_concurrent": most}, "ann"))
    first, second, _ = kept(db)
    for to, most in ((first.id, 10), (second.id, 20), (0, 8)):
        assert roll_back(db, "limit", "openai", to).answer == "done"
        found = limit_of(db, "openai")
        assert found is not None
        assert found.max_concurrent == most
    count = len(kept(db))
    assert roll_back(db, "limit", "openai", 0) == RollbackAnswer("same", None, None)
    assert len(kept(db)) == count


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
def test_deletion_and_a_creation_are_undone(
    db: StoreClient, kind: str, table: str, create: str
) -> None:
    row = (
        f"select to_jsonb(t) - '{{updated_at,updated_by}}'::text[] from laneway.{table} t"
        " where name = 'n'"
    )
    db.do(create)
    before = db.one(row)
    db.do(f"delete from laneway.{table} where name = 'n'")
    assert roll_back(db, kind, "n").answer == "done"
    assert db.one(row) == before
    created = kept(db, kind)[0]
    assert created.verb == "created"
    assert roll_back(db, kind, "n", 0).answer == "done"
    assert db.rows(row) == []
    assert roll_back(db, kind, "n", 0).answer == "same"
    assert roll_back(db, kind, "n", created.id).answer == "done"
    assert db.one(row) == before
    assert {change.by for change in kept(db, kind)[2:]} == {"bob"}


def test_settings_that_the_state_of_then_does_not_know_keep_their_value(db: StoreClient) -> None:
    """As after an upgrade that added `lease_seconds` and dropped `colour`."""
    db.run(lanes.tune("system", {"max_slots": 5, "lease_seconds": 99}, "ann"))
    db.do(
        "update laneway.control_history"
        """ set before = before - 'lease_seconds' || '{"colour": "red"}'::jsonb"""
    )
    assert roll_back(db, "lane", "system").answer == "done"
    lane = db.run(lanes.read()).lanes["system"]
    assert (lane.max_slots, lane.lease_seconds) == (1, 99)


def test_state_without_a_new_setting_is_restored_with_its_default(db: StoreClient) -> None:
    db.run(limits.delete("openai", "ann"))
    db.do("update laneway.control_history set before = before - 'scope'")
    assert roll_back(db, "limit", "openai").answer == "done"
    found = limit_of(db, "openai")
    assert found is not None
    assert (found.max_concurrent, found.scope) == (8, "cluster")


def test_object_without_history_cannot_be_rolled_back(db: StoreClient) -> None:
    assert roll_back(db, "lane", "system").answer == "no_change"
    assert roll_back(db, "lane", "absent").answer == "no_object"
    db.run(limits.tune("openai", {"max_concurrent": 3}, "ann"))
    (change,) = kept(db)
    assert roll_back(db, "limit", "ollama", change.id).answer == "no_change"
    assert roll_back(db, "limit", "openai", change.id + 1).answer == "no_change"


def test_lane_that_is_needed_is_not_deleted(db: StoreClient) -> None:
    db.run(lanes.create(Lane("new", ("fresh",)), "ann"))
    running = db.running("fresh")
    refused = roll_back(db, "lane", "new")
    assert (refused.answer, refused.blocker) == ("needed", "a job is running in it")
    db.settle(running, "finish")
    db.do("insert into laneway.job_types (name) values ('fresh')")
    refused = roll_back(db, "lane", "new")
    assert "in use (fresh)" in str(refused.blocker)
    db.run(lanes.move_type("default", "fresh", "ann"))
    created = kept(db)[0]
    assert roll_back(db, "lane", "new", 0).answer == "done"
    assert created.name not in db.run(lanes.read()).lanes


def test_limit_that_is_needed_is_not_deleted(db: StoreClient) -> None:
    db.do("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    knows(db, "chat")
    answer = db.run(limits.delete("openai", "ann"))
    assert (answer.is_gone, answer.blocker) == (False, "the handlers of chat need it")
    db.do("insert into laneway.limit_usage values ('ollama', %s, 'h', 2)", db.worker)
    assert db.run(limits.delete("ollama", "ann")).blocker == "it is held 2 times"
    assert kept(db) == []


@pytest.mark.parametrize("state", ["stopped_at = now()", "seen_at = now() - interval '46 s'"])
def test_limit_that_only_history_names_is_deleted(db: StoreClient, state: str) -> None:
    """A type stays published after its workers and jobs are gone."""
    db.do("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    knows(db, "chat")
    ended = db.running("chat")
    db.settle(ended, "finish")
    db.do(f"update laneway.workers set {state}")
    assert db.run(limits.delete("openai", "ann")).is_gone
    roll_back(db, "limit", "openai")
    assert roll_back(db, "limit", "openai").answer == "done"


@pytest.mark.parametrize(
    "place", ["ready", "delayed", "lease", "awaiting", "key_waiters", "pending"]
)
def test_limit_that_jobs_will_need_is_not_deleted(db: StoreClient, place: str) -> None:
    """No worker with their type is running now."""
    db.do("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    needs = {"awaiting": "approval", "pending": "analysis"}.get(place)
    if place == "key_waiters":
        for _ in range(2):
            db.submit("chat", concurrency_key="k")
        db.claimed(2, ["chat"])
        db.do("delete from laneway.lease")
        db.do("delete from laneway.limit_usage")
    else:
        db.submit("chat", needs=needs, delay=60.0 if place == "delayed" else None)
    if place == "lease":
        db.claimed(1, ["chat"])
    assert db.one(f"select count(*) from laneway.{'ready' if needs == 'analysis' else place}") == 1
    assert db.run(limits.delete("openai", "ann")).blocker == "the handlers of chat need it"


def test_rollback_meets_the_rules_of_now(db: StoreClient) -> None:
    """The job type went to another lane after the lane was deleted."""
    db.do("delete from laneway.worker_lanes where name = 'interactive'")
    db.run(lanes.move_type("system", "polarity", "ann"))
    with pytest.raises(Exception, match="polarity may be in one lane only, found in interactive"):
        roll_back(db, "lane", "interactive")
    assert "interactive" not in db.run(lanes.read()).lanes


@pytest.mark.parametrize("kind,name", [("limit", "openai"), ("schedule", "n")])
def test_rollback_waits_for_a_change_under_way_and_undoes_it(
    db: StoreClient, other: StoreClient, kind: str, name: str
) -> None:
    db.do(SCHEDULE)
    changes: dict[str, tuple[str, Any]] = {
        "limit": ("update laneway.limits set max_concurrent = 99 where name = 'openai'",
                  "select max_concurrent from laneway.limits where name = 'openai'"),
        "schedule": ("update laneway.schedules set cron = '1 1 1 1 1'",
                     "select cron from laneway.schedules"),
    }  # fmt: skip
    change, look = changes[kind]
    before = db.one(look)
    other.begin()
    other.do(change)
    waiting = db.later(lambda: roll_back(db, kind, name))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).answer == "done"
    assert db.one(look) == before


def test_rollback_notifies_workers(db: StoreClient) -> None:
    db.run(limits.tune("openai", {"max_concurrent": 3}, "ann"))
    version = db.version()
    roll_back(db, "limit", "openai")
    assert db.version() > version


# -- reading ------------------------------------------------------------------------------------


def test_list_is_newest_first_in_pages(db: StoreClient) -> None:
    for slots in range(2, 7):
        db.run(lanes.tune("system", {"max_slots": slots}, "ann"))
    db.run(limits.tune("openai", {"max_concurrent": 3}, "ann"))
    first = db.run(history.listing(["lane"], "system", limit=2))
    rest = db.run(history.listing(["lane"], "system", before=first[-1].id))
    assert [c.differences["max_slots"][1] for c in (*first, *rest)] == [6, 5, 4, 3, 2]
    assert len(db.run(history.listing(KINDS))) == 6


def test_state_that_python_cannot_read_spoils_only_itself(db: StoreClient) -> None:
    db.do(SCHEDULE)
    # As a version before the check may have stored it.
    db.do("set laneway.payload_checked = 'on'")
    db.do(
        "update laneway.schedules set payload = jsonb_build_object('n', repeat('9', 5000)::numeric)"
    )
    _, odd = kept(db, "schedule")
    assert odd.after is not None
    assert list(odd.after) == ["unreadable"]
