"""Counters of slots and limits lose no change, and count writes of older statements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laneway.store import workers
from tests.support.store_client import StoreClient

Another = Callable[[], StoreClient]
COUNT = {
    "slot": "select laneway.count_slots('default', %s, %s)",
    "limit": "select laneway.count_limits('openai', %s, %s, 'h')",
}
KINDS = pytest.mark.parametrize("kind", COUNT)


def count(db: StoreClient, kind: str, n: int, times: int = 1) -> None:
    for _ in range(times):
        db.do(COUNT[kind], db.worker, n)


def counted(db: StoreClient, kind: str) -> list[int]:
    """The counters as claims see them, which must match the rows."""
    seen = [row[0] for row in db.rows(f"select running from laneway.{kind}s_held")]
    assert seen == [row[0] for row in db.rows(f"select running from laneway.{kind}_usage")]
    holders = db.rows(f"select worker_id from laneway.{kind}_holders")
    assert holders == db.rows(f"select worker_id from laneway.{kind}_counts")
    return seen


@KINDS
def test_counter_moves_now_and_then_and_stays_one(db: StoreClient, kind: str) -> None:
    count(db, kind, 2)
    place = db.one(f"select place from laneway.{kind}_counts")
    count(db, kind, 1, times=64)
    assert db.one(f"select place from laneway.{kind}_counts") == place + 2
    assert counted(db, kind) == [66]


@KINDS
def test_change_that_waits_for_a_move_is_not_lost(
    db: StoreClient, another: Another, kind: str
) -> None:
    other = another()
    other.worker = db.worker
    count(db, kind, 1)
    db.begin()
    count(db, kind, 1, times=40)
    waiting = other.later(lambda: count(other, kind, 1))
    db.await_blocked(other)
    db.commit()
    waiting.result()
    assert counted(db, kind) == [42]


@KINDS
def test_two_that_count_first_make_one_counter(
    db: StoreClient, another: Another, kind: str
) -> None:
    other = another()
    other.worker = db.worker
    db.begin()
    count(db, kind, 1)
    waiting = other.later(lambda: count(other, kind, 1))
    db.await_blocked(other)
    db.commit()
    waiting.result()
    assert counted(db, kind) == [2]


@KINDS
def test_counter_that_is_deleted_meanwhile_is_made_again(
    db: StoreClient, another: Another, kind: str
) -> None:
    other = another()
    other.worker = db.worker
    count(db, kind, 1)
    count(db, kind, -1)
    db.begin()
    db.do(f"delete from laneway.{kind}_usage where worker_id = %s and running = 0", db.worker)
    waiting = other.later(lambda: count(other, kind, 1))
    db.await_blocked(other)
    db.commit()
    waiting.result()
    assert counted(db, kind) == [1]


@KINDS
def test_nothing_is_taken_from_a_counter_that_is_not_there(db: StoreClient, kind: str) -> None:
    count(db, kind, -1)
    assert counted(db, kind) == []


@KINDS
def test_truncated_counter_is_made_again(db: StoreClient, kind: str) -> None:
    count(db, kind, 3)
    db.do(f"truncate laneway.{kind}_usage")
    count(db, kind, 1)
    assert counted(db, kind) == [1]


def test_statements_of_earlier_versions_are_counted(db: StoreClient) -> None:
    for _ in range(2):
        db.do(
            "insert into laneway.slot_usage as u (lane, worker_id, running)"
            " values ('default', %s, 3)"
            " on conflict (lane, worker_id) do update set running = u.running + excluded.running",
            db.worker,
        )
        db.do(
            "insert into laneway.limit_usage as u (limit_name, worker_id, host, running)"
            " values ('openai', %s, 'h', 3) on conflict (limit_name, worker_id) do update"
            " set running = u.running + excluded.running, host = excluded.host",
            db.worker,
        )
    for kind, name in (("slot", "lane"), ("limit", "limit_name")):
        db.do(
            f"update laneway.{kind}_usage u set running = u.running - 1"
            f" where u.{name} = any ('{{default,openai}}') and u.worker_id = %s",
            db.worker,
        )
        assert counted(db, kind) == [5]
        db.do(f"delete from laneway.{kind}_usage where worker_id = %s", db.worker)
        assert counted(db, kind) == []


def test_worker_that_stops_leaves_only_counters_in_use(db: StoreClient) -> None:
    count(db, "slot", 1)
    count(db, "limit", 1, times=40)
    count(db, "limit", -1, times=40)
    db.run(workers.stop(db.worker))
    assert counted(db, "slot") == [1]
    assert counted(db, "limit") == []
