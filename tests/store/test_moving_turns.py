"""Places in the line for a limit move, lose no change, and heed statements of earlier versions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from laneway.store import workers
from tests.store.desk import Desk

Another = Callable[[], Desk]
NOTE = "select laneway.note_turn('narrow', 'low', %s, 'claim', '', %s, clock_timestamp() - %s)"
# As functions of earlier versions write who waits.
EARLIER = (
    "insert into laneway.limit_waiters as w"
    " (limit_name, lane, worker_id, kind, site, rank, lane_since, since)"
    " values ('narrow', 'low', %s, 'claim', '', 0, now(), now() - interval '2 hours')"
    " on conflict (limit_name, lane, worker_id, kind)"
    " do update set rank = excluded.rank, called_at = null"
)


@pytest.fixture(autouse=True)
def narrow(desk: Desk) -> None:
    desk.do("insert into laneway.limits (name, max_concurrent) values ('narrow', 1)")


@pytest.fixture
def twin(desk: Desk, other: Desk) -> Desk:
    """Another connection of the same worker."""
    other.worker = desk.worker
    return other


def note(desk: Desk, rank: int | None, *, times: int = 1, ago_s: float = 0) -> None:
    for _ in range(times):
        desk.do(NOTE, desk.worker, rank, timedelta(seconds=ago_s))


def line(desk: Desk) -> list[int]:
    """The ranks of those that wait, of whom each has one row in both tables."""
    places = "select limit_name, lane, worker_id, kind from laneway.{} order by 1, 2, 3, 4"
    assert desk.rows(places.format("limit_turns")) == desk.rows(places.format("limit_waiters"))
    return [row[0] for row in desk.rows("select rank from laneway.waiters_of('{narrow}')")]


def lead(desk: Desk) -> None:
    desk.do(
        "insert into laneway.leader (name, holder, epoch, held_until)"
        " values ('leader', %s, 1, 'infinity')",
        desk.worker,
    )


def test_place_moves_now_and_then_and_stays_one(desk: Desk) -> None:
    note(desk, 0)
    listed = desk.rows("select xmin::text, ctid::text from laneway.limit_waiters")
    place = desk.one("select place from laneway.limit_turns")
    for rank in range(32):
        note(desk, None)
        assert line(desk) == []
        note(desk, rank)
        assert line(desk) == [rank]
    assert desk.one("select place from laneway.limit_turns") == place + 2
    assert desk.rows("select xmin::text, ctid::text from laneway.limit_waiters") == listed


def test_one_that_comes_back_has_waited_since_then(desk: Desk) -> None:
    since = "select lane_since, since from laneway.waiters_of('{narrow}')"
    note(desk, 0, ago_s=9)
    before = desk.one(since)
    note(desk, 5, ago_s=6)
    assert desk.one(since) == before
    note(desk, None, ago_s=3)
    note(desk, 5)
    after = desk.one(since)
    assert all(
        late - early > timedelta(seconds=8) for early, late in zip(before, after, strict=True)
    )


def test_change_that_waits_for_a_move_is_not_lost(desk: Desk, twin: Desk) -> None:
    note(desk, 0)
    desk.begin()
    note(desk, 1, times=40)
    waiting = twin.later(lambda: note(twin, 7))
    desk.await_blocked(twin)
    desk.commit()
    waiting.result()
    assert line(desk) == [7]


def test_two_that_come_first_are_one(desk: Desk, twin: Desk) -> None:
    desk.begin()
    note(desk, 1)
    waiting = twin.later(lambda: note(twin, 7))
    desk.await_blocked(twin)
    desk.commit()
    waiting.result()
    assert line(desk) == [7]


def test_one_that_is_deleted_meanwhile_is_back_in_the_line(desk: Desk, twin: Desk) -> None:
    note(desk, 1)
    desk.begin()
    desk.do("delete from laneway.limit_waiters")
    waiting = twin.later(lambda: note(twin, 7))
    desk.await_blocked(twin)
    desk.commit()
    waiting.result()
    assert line(desk) == [7]


def test_newcomer_deletes_those_that_left_a_minute_ago(desk: Desk, another: Another) -> None:
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
    assert sorted(line(desk)) == [1, 2, 3]
    listed = {row[0] for row in desk.rows("select worker_id from laneway.limit_waiters")}
    assert listed == {one.worker for one in (just_gone, waits, busy, new)}


def test_site_of_a_waiter_follows_the_scope_of_its_limit(desk: Desk) -> None:
    turns = (
        "select laneway.keep_turns(%s, 'low', 'claim', '{narrow}', '{0}', null, '{true}', null,"
        " clock_timestamp())"
    )
    desk.do(turns, desk.worker)
    desk.do("update laneway.limits set scope = 'process' where name = 'narrow'")
    desk.do(turns, desk.worker)
    assert desk.one("select site from laneway.waiters_of('{narrow}')") == str(desk.worker)


def test_name_that_is_no_limit_has_no_line(desk: Desk) -> None:
    desk.do(
        "select laneway.keep_turns(%s, 'low', 'claim', '{none}', '{0}', null, '{true}', null,"
        " clock_timestamp())",
        desk.worker,
    )
    assert desk.rows("select 1 from laneway.limit_waiters") == []


def test_statements_of_earlier_versions_are_heeded(desk: Desk) -> None:
    for _ in range(2):
        desk.do(EARLIER, desk.worker)
        assert line(desk) == [0]
    note(desk, 3)
    assert line(desk) == [3]
    desk.do("delete from laneway.limit_waiters where since < now() - interval '1 hour'")
    assert line(desk) == []
    assert desk.rows("select 1 from laneway.limit_turns") == []


def test_sweep_forgets_who_has_not_asked_for_an_hour(desk: Desk, another: Another) -> None:
    lead(desk)
    late, lost = another(), another()
    desk.do(EARLIER, desk.worker)
    desk.do(EARLIER, late.worker)
    note(late, None)
    note(late, 4)
    desk.do(EARLIER, lost.worker)
    desk.do("delete from laneway.limit_turns where worker_id = %s", lost.worker)
    desk.run(workers.sweep(desk.worker))
    assert line(desk) == [4]
