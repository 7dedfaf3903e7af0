"""Counters of slots and limits move, lose no change, and count what older statements say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laneway.store import workers
from tests.store.desk import Desk

Another = Callable[[], Desk]
COUNT = {
    "slot": "select laneway.count_slots('default', %s, %s)",
    "limit": "select laneway.count_limits('openai', %s, %s, 'h')",
}
KINDS = pytest.mark.parametrize("kind", COUNT)


def count(desk: Desk, kind: str, n: int, times: int = 1) -> None:
    for _ in range(times):
        desk.do(COUNT[kind], desk.worker, n)


def counted(desk: Desk, kind: str) -> list[int]:
    """What claims see, which is also what there is."""
    seen = [row[0] for row in desk.rows(f"select running from laneway.{kind}s_held")]
    assert seen == [row[0] for row in desk.rows(f"select running from laneway.{kind}_usage")]
    holders = desk.rows(f"select worker_id from laneway.{kind}_holders")
    assert holders == desk.rows(f"select worker_id from laneway.{kind}_counts")
    return seen


@KINDS
def test_a_counter_moves_now_and_then_and_stays_one(desk: Desk, kind: str) -> None:
    count(desk, kind, 2)
    place = desk.one(f"select place from laneway.{kind}_counts")
    count(desk, kind, 1, times=64)
    assert desk.one(f"select place from laneway.{kind}_counts") == place + 2
    assert counted(desk, kind) == [66]


@KINDS
def test_a_change_that_waits_for_a_move_is_not_lost(
    desk: Desk, another: Another, kind: str
) -> None:
    other = another()
    other.worker = desk.worker
    count(desk, kind, 1)
    desk.begin()
    count(desk, kind, 1, times=40)
    waiting = other.later(lambda: count(other, kind, 1))
    desk.await_blocked(other)
    desk.commit()
    waiting.result()
    assert counted(desk, kind) == [42]


@KINDS
def test_two_that_count_first_make_one_counter(desk: Desk, another: Another, kind: str) -> None:
    other = another()
    other.worker = desk.worker
    desk.begin()
    count(desk, kind, 1)
    waiting = other.later(lambda: count(other, kind, 1))
    desk.await_blocked(other)
    desk.commit()
    waiting.result()
    assert counted(desk, kind) == [2]


@KINDS
def test_a_counter_that_is_deleted_meanwhile_is_made_again(
    desk: Desk, another: Another, kind: str
) -> None:
    other = another()
    other.worker = desk.worker
    count(desk, kind, 1)
    count(desk, kind, -1)
    desk.begin()
    desk.do(f"delete from laneway.{kind}_usage where worker_id = %s and running = 0", desk.worker)
    waiting = other.later(lambda: count(other, kind, 1))
    desk.await_blocked(other)
    desk.commit()
    waiting.result()
    assert counted(desk, kind) == [1]


@KINDS
def test_nothing_is_taken_from_a_counter_that_is_not_there(desk: Desk, kind: str) -> None:
    count(desk, kind, -1)
    assert counted(desk, kind) == []


@KINDS
def test_a_truncated_counter_is_made_again(desk: Desk, kind: str) -> None:
    count(desk, kind, 3)
    desk.do(f"truncate laneway.{kind}_usage")
    count(desk, kind, 1)
    assert counted(desk, kind) == [1]


def test_statements_of_earlier_versions_are_counted(desk: Desk) -> None:
    for _ in range(2):
        desk.do(
            "insert into laneway.slot_usage as u (lane, worker_id, running)"
            " values ('default', %s, 3)"
            " on conflict (lane, worker_id) do update set running = u.running + excluded.running",
            desk.worker,
        )
        desk.do(
            "insert into laneway.limit_usage as u (limit_name, worker_id, host, running)"
            " values ('openai', %s, 'h', 3) on conflict (limit_name, worker_id) do update"
            " set running = u.running + excluded.running, host = excluded.host",
            desk.worker,
        )
    for kind, name in (("slot", "lane"), ("limit", "limit_name")):
        desk.do(
            f"update laneway.{kind}_usage u set running = u.running - 1"
            f" where u.{name} = any ('{{default,openai}}') and u.worker_id = %s",
            desk.worker,
        )
        assert counted(desk, kind) == [5]
        desk.do(f"delete from laneway.{kind}_usage where worker_id = %s", desk.worker)
        assert counted(desk, kind) == []


def test_a_worker_that_stops_leaves_only_counters_in_use(desk: Desk) -> None:
    count(desk, "slot", 1)
    count(desk, "limit", 1, times=40)
    count(desk, "limit", -1, times=40)
    desk.run(workers.stop(desk.worker))
    assert counted(desk, "slot") == [1]
    assert counted(desk, "limit") == []
