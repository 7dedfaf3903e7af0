"""Laws of turns: lanes, processes and calls share a limit fairly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.domain.lane import Lane
from laneway.store import call_limits, lanes
from laneway.store.leases import ClaimAnswer
from tests.store.approvals import publish
from tests.store.test_limits import sit_at
from tests.support.store_client import StoreClient

LANES = {"low": "background", "high": "urgent"}


@pytest.fixture(autouse=True)
def lanes_of_types(db: StoreClient) -> None:
    """Two lanes, each with one type, and both types under one limit of 1."""
    limit_to(db, 1)
    for lane, job_type in LANES.items():
        db.run(lanes.create(Lane(lane, job_types=(job_type,), max_slots=None), "tests"))
        publish(db, job_type, limits=("narrow",))


def limit_to(db: StoreClient, most: int) -> None:
    db.do(
        "insert into laneway.limits (name, max_concurrent) values ('narrow', %s)"
        " on conflict (name) do update set max_concurrent = excluded.max_concurrent",
        most,
    )


def claim(db: StoreClient, lane: str, room: int = 100) -> ClaimAnswer:
    return db.claim(room, [LANES[lane]], lane=lane)


def start(db: StoreClient, lane: str, room: int = 100) -> list[Claim]:
    return [one.claim for one in claim(db, lane, room).assignments]


def wait_long(db: StoreClient) -> None:
    """Move the start of every waiter back by a second."""
    db.do(
        "update laneway.limit_turns set since = since - interval '1 s',"
        " lane_since = lane_since - interval '1 s'"
    )


@pytest.mark.parametrize("slots", [1, None])
def test_higher_priority_in_another_lane_goes_first(db: StoreClient, slots: int | None) -> None:
    db.do("update laneway.worker_lanes set max_slots = %s where name <> 'default'", slots)
    for _ in range(5):
        db.submit("background")
    (running,) = start(db, "low")
    urgent = [db.submit("urgent", priority=10) for _ in range(3)]
    assert start(db, "high") == []
    for seq in urgent:
        db.settle(running, "finish")
        answer = claim(db, "low")
        assert (answer.state, answer.limited, answer.wait_s) == ("limited", True, 0.05)
        (running,) = start(db, "high")
        assert running.seq == seq
        assert start(db, "high") == []
    db.settle(running, "finish")
    # The lane reports that it has no more jobs, and the others continue.
    assert start(db, "high") == []
    assert len(start(db, "low")) == 1
    assert db.limits_agree()


def test_lanes_of_equal_priority_alternate(db: StoreClient) -> None:
    for _ in range(6):
        db.submit("background")
        db.submit("urgent")
    served = []
    (running,) = start(db, "low")
    for _ in range(10):
        for lane in LANES:
            assert start(db, lane) == []
        db.settle(running, "finish")
        wait_long(db)
        found = {lane: start(db, lane) for lane in LANES}
        ((lane, (running,)),) = ((lane, got) for lane, got in found.items() if got)
        served.append(lane)
    assert Counter(served) == {"low": 5, "high": 5}
    assert served == served[:2] * 5


def test_older_turn_of_one_worker_stalls_no_lane(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    """A worker that joins or writes its row while another is served keeps the turn before."""
    asking = {"first": (db, "low"), "second": (another(), "low"), "third": (another(), "high")}
    for _ in range(8):
        db.submit("background")
        db.submit("urgent")
    served: Counter[str] = Counter()
    (running,) = start(db, "low")
    for _ in range(10):
        for one, lane in asking.values():
            assert start(one, lane) == []
        db.do(
            "update laneway.limit_turns set lane_since = lane_since - interval '10 s'"
            " where worker_id = %s",
            asking["second"][0].worker,
        )
        db.settle(running, "finish")
        wait_long(db)
        ((lane, (running,)),) = (
            (lane, got) for one, lane in asking.values() if (got := start(one, lane))
        )
        served[lane] += 1
    assert served == {"low": 5, "high": 5}


def test_lane_with_more_slots_gets_more_of_each_round(db: StoreClient) -> None:
    limit_to(db, 3)
    db.do("update laneway.worker_lanes set max_slots = 1 where name = 'low'")
    for _ in range(40):
        db.submit("background")
        db.submit("urgent")
    served: Counter[str] = Counter()
    running = start(db, "high") + start(db, "low")
    for _ in range(24):
        for lane in LANES:
            running += start(db, lane)
        db.settle(running.pop(0), "finish")
        wait_long(db)
        for lane in ("low", "high"):
            got = start(db, lane)
            served[lane] += len(got)
            running += got
    assert served["high"] > 2 * served["low"] > 0


def test_waiter_that_does_not_come_is_passed_over(db: StoreClient, other: StoreClient) -> None:
    db.submit("background")
    db.submit("background")
    (running,) = start(db, "low")
    db.submit("urgent", priority=10)
    assert start(other, "high") == []
    db.settle(running, "finish")
    assert start(db, "low") == []
    assert db.one("select called_at is not null from laneway.limit_turns where lane = 'high'")
    db.do("update laneway.limit_turns set called_at = called_at - interval '1 s'")
    (running,) = start(db, "low")
    # Once it asks again, it is first again.
    assert start(other, "high") == []
    db.submit("background")
    db.settle(running, "finish")
    assert start(db, "low") == []
    assert len(start(other, "high")) == 1


def test_dead_waiters_are_passed_over_together(db: StoreClient, other: StoreClient) -> None:
    db.submit("background")
    db.submit("background")
    (running,) = start(db, "low")
    db.submit("urgent", priority=10)
    dead = 12
    for _ in range(dead):
        other.worker = uuid4()
        assert start(other, "high") == []
    db.settle(running, "finish")
    asked = 0
    while not start(db, "low"):
        asked += 1
        assert asked < 4, "each of them was waited for"
        db.do("update laneway.limit_turns set called_at = called_at - interval '1 s'")
    assert db.one("select count(*) from laneway.limit_waiters where lane = 'high'") == dead


def test_only_the_first_is_called_where_all_come(db: StoreClient, other: StoreClient) -> None:
    db.submit("background")
    db.submit("background")
    (running,) = start(db, "low")
    db.submit("urgent", priority=10)
    for _ in range(5):
        other.worker = uuid4()
        assert start(other, "high") == []
    db.settle(running, "finish")
    assert start(db, "low") == []
    called = "select count(*) from laneway.limit_turns where called_at is not null"
    assert db.one(called) == 1


def test_release_calls_the_worker_whose_turn_it_is(db: StoreClient, other: StoreClient) -> None:
    db.submit("background")
    (running,) = start(db, "low")
    db.submit("urgent")
    assert start(other, "high") == []
    other.do("listen laneway")
    db.settle(running, "finish")
    heard = [each.payload for each in other.conn.notifies(timeout=60, stop_after=1)]
    assert heard == [f"turn {other.worker}"]


def test_full_lane_blocks_no_other(db: StoreClient) -> None:
    limit_to(db, 2)
    db.do("update laneway.worker_lanes set max_slots = 1 where name = 'high'")
    for _ in range(3):
        db.submit("urgent", priority=10)
        db.submit("background")
    assert len(start(db, "high")) == 1
    (running,) = start(db, "low")
    for _ in range(2):
        assert start(db, "high") == []
        db.settle(running, "finish")
        (running,) = start(db, "low")


def test_uncontended_limit_writes_no_row_per_claim(db: StoreClient) -> None:
    for _ in range(5):
        db.submit("background")
    (running,) = start(db, "low")
    version = "select xmin::text, ctid::text from laneway.limit_turns where waits"
    kept = db.rows(version)
    for _ in range(3):
        db.settle(running, "finish")
        (running,) = start(db, "low")
        assert db.rows(version) == kept
    db.settle(running, "finish")
    (running,) = start(db, "low")
    assert start(db, "low") == []
    assert db.rows(version) == []


def test_waiter_of_another_host_is_not_called(
    db: StoreClient, other: StoreClient, another: Callable[[], StoreClient]
) -> None:
    dead = another()
    db.do("update laneway.limits set scope = 'host' where name = 'narrow'")
    for one, host in ((db, "here"), (other, "there"), (dead, "here")):
        sit_at(one, host)
    for _ in range(4):
        db.submit("background")
        db.submit("urgent", priority=10)
    (running,) = start(db, "low")
    # The limit is full there and stays full: that waiter is first, but cannot use it here.
    assert len(start(other, "high")) == 1
    assert start(other, "high") == start(dead, "high") == []
    db.settle(running, "finish")
    assert start(db, "low") == []
    called = "select worker_id from laneway.limit_turns where called_at is not null"
    assert db.one(called) == dead.worker
    db.do("update laneway.limit_turns set called_at = called_at - interval '1 s'")
    assert len(start(db, "low")) == 1


def test_leaving_waiter_waits_for_no_lock(db: StoreClient, other: StoreClient) -> None:
    db.submit("background")
    (running,) = start(db, "low")
    other.begin()
    other.do("update laneway.limit_turns set used = 1")
    assert claim(db, "low").state == "ok"
    other.commit()
    assert start(db, "low") == db.rows("select 1 from laneway.limit_turns where waits") == []
    db.settle(running, "finish")


def test_call_of_many_workers_fits_into_a_message(db: StoreClient) -> None:
    many = [uuid4() for _ in range(1000)]
    assert db.do("select laneway.wake_workers(%s, %s)", many, db.worker) == 1


# -- calls -----------------------------------------------------------------------------------


def asks(db: StoreClient, claim: Claim) -> str:
    return db.run(call_limits.acquire(claim, {"narrow": 1})).answer


@pytest.fixture
def callers(db: StoreClient, other: StoreClient) -> Callable[..., Claim]:
    """Jobs of two workers that call under a limit of 1."""
    limit_to(db, 1)

    def caller(of: StoreClient, **more: object) -> Claim:
        return of.running("calls", **more)

    return caller


def test_calls_of_two_processes_alternate(
    db: StoreClient, other: StoreClient, callers: Callable[..., Claim]
) -> None:
    first, *many = [callers(db) for _ in range(4)]
    late = callers(other)
    assert asks(db, first) == "granted"
    assert asks(db, many[0]) == "full"
    assert asks(other, late) == "full"
    db.run(call_limits.release(first, {"narrow": 0}))
    wait_long(db)
    assert asks(db, many[0]) == "granted"
    assert asks(db, many[1]) == "full"
    db.run(call_limits.release(many[0], {"narrow": 0}))
    wait_long(db)
    # The second process has waited longer than the next of the first one.
    assert db.run(call_limits.acquire(many[1], {"narrow": 1})) == ("full", 0.05)
    assert asks(other, late) == "granted"


def test_call_of_a_job_with_higher_priority_goes_first(
    db: StoreClient, other: StoreClient, callers: Callable[..., Claim]
) -> None:
    first, second = callers(db), callers(db)
    late = callers(other, priority=10)
    assert asks(db, first) == "granted"
    assert asks(db, second) == "full"
    assert asks(other, late) == "full"
    db.run(call_limits.release(first, {"narrow": 0}))
    assert asks(db, second) == "full"
    assert asks(other, late) == "granted"


def test_call_inside_of_a_limit_waits_for_no_turn(
    db: StoreClient, other: StoreClient, callers: Callable[..., Claim]
) -> None:
    limit_to(db, 2)
    first, second = callers(db), callers(db)
    late = callers(other, priority=10)
    assert db.run(call_limits.acquire(first, {"narrow": 1})).answer == "granted"
    assert db.run(call_limits.acquire(second, {"narrow": 1})).answer == "granted"
    assert asks(other, late) == "full"
    db.run(call_limits.release(second, {"narrow": 0}))
    assert db.run(call_limits.acquire(first, {"narrow": 2}, {"narrow": 1})).answer == "granted"


def test_granted_call_leaves_the_line(
    db: StoreClient, other: StoreClient, callers: Callable[..., Claim]
) -> None:
    first, second = callers(db), callers(other)
    assert asks(db, first) == "granted"
    assert asks(other, second) == "full"
    db.run(call_limits.release(first, {"narrow": 0}))
    assert asks(other, second) == "granted"
    assert db.rows("select 1 from laneway.limit_turns where waits") == []
