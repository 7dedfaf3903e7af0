"""Waiters for a limit lose no change, and respect statements of earlier versions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from laneway.store import workers
from tests.support.store_client import StoreClient

Another = Callable[[], StoreClient]
NOTE = "select laneway.save_turn('narrow', 'low', %s, 'claim', '', %s, clock_timestamp() - %s)"
# As functions of earlier versions record a waiter.
EARLIER = (
    "insert into laneway.limit_waiters as w"
    " (limit_name, lane, worker_id, kind, site, rank, lane_since, since)"
    " values ('narrow', 'low', %s, 'claim', '', 0, now(), now() - interval '2 hours')"
    " on conflict (limit_name, lane, worker_id, kind)"
    " do update set rank = excluded.rank, called_at = null"
)


@pytest.fixture(autouse=True)
def narrow(db: StoreClient) -> None:
    db.do("insert into laneway.limits (name, max_concurrent) values ('narrow', 1)")


@pytest.fixture
def same_worker(db: StoreClient, other: StoreClient) -> StoreClient:
    """Another connection of the same worker."""
    other.worker = db.worker
    return other


def note(db: StoreClient, rank: int | None, *, times: int = 1, ago_s: float = 0) -> None:
    for _ in range(times):
        db.do(NOTE, db.worker, rank, timedelta(seconds=ago_s))


def line(db: StoreClient) -> list[int]:
    """The ranks of the waiters; each has one row in both tables."""
    places = "select limit_name, lane, worker_id, kind from laneway.{} order by 1, 2, 3, 4"
    assert db.rows(places.format("limit_turns")) == db.rows(places.format("limit_waiters"))
    return [row[0] for row in db.rows("select rank from laneway.waiters_of('{narrow}')")]


def lead(db: StoreClient) -> None:
    db.do(
        "insert into laneway.leader (name, holder, epoch, held_until)"
        " values ('leader', %s, 1, 'infinity')",
        db.worker,
    )


def test_place_moves_now_and_then_and_stays_one(db: StoreClient) -> None:
    note(db, 0)
    listed = db.rows("select xmin::text, ctid::text from laneway.limit_waiters")
    place = db.one("select place from laneway.limit_turns")
    for rank in range(32):
        note(db, None)
        assert line(db) == []
        note(db, rank)
        assert line(db) == [rank]
    assert db.one("select place from laneway.limit_turns") == place + 2
    assert db.rows("select xmin::text, ctid::text from laneway.limit_waiters") == listed


def test_one_that_comes_back_has_waited_since_then(db: StoreClient) -> None:
    since = "select lane_since, since from laneway.waiters_of('{narrow}')"
    note(db, 0, ago_s=9)
    before = db.one(since)
    note(db, 5, ago_s=6)
    assert db.one(since) == before
    note(db, None, ago_s=3)
    note(db, 5)
    after = db.one(since)
    assert all(
        late - early > timedelta(seconds=8) for early, late in zip(before, after, strict=True)
    )


def test_change_that_waits_for_a_move_is_not_lost(
    db: StoreClient, same_worker: StoreClient
) -> None:
    note(db, 0)
    db.begin()
    note(db, 1, times=40)
    waiting = same_worker.later(lambda: note(same_worker, 7))
    db.await_blocked(same_worker)
    db.commit()
    waiting.result()
    assert line(db) == [7]


def test_two_that_come_first_are_one(db: StoreClient, same_worker: StoreClient) -> None:
    db.begin()
    note(db, 1)
    waiting = same_worker.later(lambda: note(same_worker, 7))
    db.await_blocked(same_worker)
    db.commit()
    waiting.result()
    assert line(db) == [7]


def test_one_that_is_deleted_meanwhile_is_back_in_the_line(
    db: StoreClient, same_worker: StoreClient
) -> None:
    note(db, 1)
    db.begin()
    db.do("delete from laneway.limit_waiters")
    waiting = same_worker.later(lambda: note(same_worker, 7))
    db.await_blocked(same_worker)
    db.commit()
    waiting.result()
    assert line(db) == [7]


def test_newcomer_deletes_those_that_left_a_minute_ago(db: StoreClient, another: Another) -> None:
    long_gone, just_gone, waits, busy, new = (another() for _ in range(5))
    for one in (long_gone, just_gone, waits, busy):
        note(one, 1, ago_s=100)
    for one, ago_s in ((long_gone, 90), (just_gone, 10), (busy, 90)):
        note(one, None, ago_s=ago_s)
    busy.begin()
    note(busy, 2)
    # Waits for none of them.
    note(new, 3)
    busy.commit()
    assert sorted(line(db)) == [1, 2, 3]
    listed = {row[0] for row in db.rows("select worker_id from laneway.limit_waiters")}
    assert listed == {one.worker for one in (just_gone, waits, busy, new)}


def test_site_of_a_waiter_follows_the_scope_of_its_limit(db: StoreClient) -> None:
    turns = (
        "select laneway.update_turns(%s, 'low', 'claim', '{narrow}', '{0}', null, '{true}', null,"
        " clock_timestamp())"
    )
    db.do(turns, db.worker)
    db.do("update laneway.limits set scope = 'process' where name = 'narrow'")
    db.do(turns, db.worker)
    assert db.one("select site from laneway.waiters_of('{narrow}')") == str(db.worker)


def test_unknown_limit_has_no_waiters(db: StoreClient) -> None:
    db.do(
        "select laneway.update_turns(%s, 'low', 'claim', '{none}', '{0}', null, '{true}', null,"
        " clock_timestamp())",
        db.worker,
    )
    assert db.rows("select 1 from laneway.limit_waiters") == []


def test_statements_of_earlier_versions_are_heeded(db: StoreClient) -> None:
    for _ in range(2):
        db.do(EARLIER, db.worker)
        assert line(db) == [0]
    note(db, 3)
    assert line(db) == [3]
    db.do("delete from laneway.limit_waiters where since < now() - interval '1 hour'")
    assert line(db) == []
    assert db.rows("select 1 from laneway.limit_turns") == []


def test_sweep_deletes_waiters_silent_for_an_hour(db: StoreClient, another: Another) -> None:
    lead(db)
    late, lost = another(), another()
    db.do(EARLIER, db.worker)
    db.do(EARLIER, late.worker)
    note(late, None)
    note(late, 4)
    db.do(EARLIER, lost.worker)
    db.do("delete from laneway.limit_turns where worker_id = %s", lost.worker)
    db.run(workers.sweep(db.worker))
    assert line(db) == [4]


def test_sweep_forgets_those_that_left_a_minute_ago(db: StoreClient, another: Another) -> None:
    lead(db)
    long_gone, just_gone = another(), another()
    for one, ago_s in ((long_gone, 90), (just_gone, 10)):
        note(one, 1, ago_s=100)
        note(one, None, ago_s=ago_s)
    db.run(workers.sweep(db.worker))
    assert db.rows("select worker_id from laneway.limit_waiters") == [(just_gone.worker,)]


def test_sweep_waits_for_no_row_that_is_written(db: StoreClient, other: StoreClient) -> None:
    lead(db)
    note(other, 1, ago_s=9000)
    other.begin()
    note(other, 2)
    db.run(workers.sweep(db.worker))
    other.commit()
    assert line(db) == [2]


def test_stopped_worker_leaves_the_line(db: StoreClient, other: StoreClient) -> None:
    note(db, 1)
    note(other, 2)
    db.run(workers.stop(other.worker))
    assert line(db) == [1]


def test_waiter_whose_state_was_lost_is_back_in_the_line(db: StoreClient) -> None:
    note(db, 1)
    db.do("truncate laneway.limit_turns")
    note(db, 7)
    assert line(db) == [7]
