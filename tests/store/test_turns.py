"""Laws of turns: lanes, processes and calls that want the same limit take it fairly."""

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
from tests.store.desk import Desk
from tests.store.test_limits import sit_at

LANES = {"low": "background", "high": "urgent"}


@pytest.fixture(autouse=True)
def lanes_of_types(desk: Desk) -> None:
    """Two lanes, each with one type, and both types under one limit of 1."""
    limit_to(desk, 1)
    for lane, job_type in LANES.items():
        desk.run(lanes.create(Lane(lane, job_types=(job_type,), max_slots=None), "tests"))
        publish(desk, job_type, limits=("narrow",))


def limit_to(desk: Desk, most: int) -> None:
    desk.do(
        "insert into laneway.limits (name, max_concurrent) values ('narrow', %s)"
        " on conflict (name) do update set max_concurrent = excluded.max_concurrent",
        most,
    )


def claim(desk: Desk, lane: str, room: int = 100) -> ClaimAnswer:
    return desk.claim(room, [LANES[lane]], lane=lane)


def start(desk: Desk, lane: str, room: int = 100) -> list[Claim]:
    return [one.claim for one in claim(desk, lane, room).assignments]


def wait_long(desk: Desk) -> None:
    """Everybody who waits has done so for a second."""
    desk.do(
        "update laneway.limit_turns set since = since - interval '1 s',"
        " lane_since = lane_since - interval '1 s'"
    )


@pytest.mark.parametrize("slots", [1, None])
def test_higher_priority_in_another_lane_goes_first(desk: Desk, slots: int | None) -> None:
    desk.do("update laneway.worker_lanes set max_slots = %s where name <> 'default'", slots)
    for _ in range(5):
        desk.submit("background")
    (running,) = start(desk, "low")
    urgent = [desk.submit("urgent", priority=10) for _ in range(3)]
    assert start(desk, "high") == []
    for seq in urgent:
        desk.settle(running, "finish")
        answer = claim(desk, "low")
        assert (answer.state, answer.limited, answer.wait_s) == ("limited", True, 0.05)
        (running,) = start(desk, "high")
        assert running.seq == seq
        assert start(desk, "high") == []
    desk.settle(running, "finish")
    # No more of those: the lane says so itself, and the others go on.
    assert start(desk, "high") == []
    assert len(start(desk, "low")) == 1
    assert desk.limits_agree()


def test_lanes_of_equal_priority_alternate(desk: Desk) -> None:
    for _ in range(6):
        desk.submit("background")
        desk.submit("urgent")
    served = []
    (running,) = start(desk, "low")
    for _ in range(10):
        for lane in LANES:
            assert start(desk, lane) == []
        desk.settle(running, "finish")
        wait_long(desk)
        found = {lane: start(desk, lane) for lane in LANES}
        ((lane, (running,)),) = ((lane, got) for lane, got in found.items() if got)
        served.append(lane)
    assert Counter(served) == {"low": 5, "high": 5}
    assert served == served[:2] * 5


def test_lane_with_more_slots_gets_more_of_each_round(desk: Desk) -> None:
    limit_to(desk, 3)
    desk.do("update laneway.worker_lanes set max_slots = 1 where name = 'low'")
    for _ in range(40):
        desk.submit("background")
        desk.submit("urgent")
    served: Counter[str] = Counter()
    running = start(desk, "high") + start(desk, "low")
    for _ in range(24):
        for lane in LANES:
            running += start(desk, lane)
        desk.settle(running.pop(0), "finish")
        wait_long(desk)
        for lane in ("low", "high"):
            got = start(desk, lane)
            served[lane] += len(got)
            running += got
    assert served["high"] > 2 * served["low"] > 0


def test_waiter_that_does_not_come_is_passed_over(desk: Desk, other: Desk) -> None:
    desk.submit("background")
    desk.submit("background")
    (running,) = start(desk, "low")
    desk.submit("urgent", priority=10)
    assert start(other, "high") == []
    desk.settle(running, "finish")
    assert start(desk, "low") == []
    assert desk.one("select called_at is not null from laneway.limit_turns where lane = 'high'")
    desk.do("update laneway.limit_turns set called_at = called_at - interval '1 s'")
    (running,) = start(desk, "low")
    # Once it asks again, it is first again.
    assert start(other, "high") == []
    desk.submit("background")
    desk.settle(running, "finish")
    assert start(desk, "low") == []
    assert len(start(other, "high")) == 1


def test_dead_waiters_are_passed_over_together(desk: Desk, other: Desk) -> None:
    desk.submit("background")
    desk.submit("background")
    (running,) = start(desk, "low")
    desk.submit("urgent", priority=10)
    dead = 12
    for _ in range(dead):
        other.worker = uuid4()
        assert start(other, "high") == []
    desk.settle(running, "finish")
    asked = 0
    while not start(desk, "low"):
        asked += 1
        assert asked < 4, "each of them was waited for"
        desk.do("update laneway.limit_turns set called_at = called_at - interval '1 s'")
    assert desk.one("select count(*) from laneway.limit_waiters where lane = 'high'") == dead


def test_only_the_first_is_called_where_all_come(desk: Desk, other: Desk) -> None:
    desk.submit("background")
    desk.submit("background")
    (running,) = start(desk, "low")
    desk.submit("urgent", priority=10)
    for _ in range(5):
        other.worker = uuid4()
        assert start(other, "high") == []
    desk.settle(running, "finish")
    assert start(desk, "low") == []
    called = "select count(*) from laneway.limit_turns where called_at is not null"
    assert desk.one(called) == 1


def test_release_calls_the_worker_whose_turn_it_is(desk: Desk, other: Desk) -> None:
    desk.submit("background")
    (running,) = start(desk, "low")
    desk.submit("urgent")
    assert start(other, "high") == []
    other.do("listen laneway")
    desk.settle(running, "finish")
    heard = [each.payload for each in other.conn.notifies(timeout=60, stop_after=1)]
    assert heard == [f"turn {other.worker}"]


def test_lane_without_a_free_slot_holds_nobody_up(desk: Desk) -> None:
    limit_to(desk, 2)
    desk.do("update laneway.worker_lanes set max_slots = 1 where name = 'high'")
    for _ in range(3):
        desk.submit("urgent", priority=10)
        desk.submit("background")
    assert len(start(desk, "high")) == 1
    (running,) = start(desk, "low")
    for _ in range(2):
        assert start(desk, "high") == []
        desk.settle(running, "finish")
        (running,) = start(desk, "low")


def test_uncontended_limit_writes_no_row_per_claim(desk: Desk) -> None:
    for _ in range(5):
        desk.submit("background")
    (running,) = start(desk, "low")
    version = "select xmin::text, ctid::text from laneway.limit_turns where waits"
    kept = desk.rows(version)
    for _ in range(3):
        desk.settle(running, "finish")
        (running,) = start(desk, "low")
        assert desk.rows(version) == kept
    desk.settle(running, "finish")
    (running,) = start(desk, "low")
    assert start(desk, "low") == []
    assert desk.rows(version) == []


def test_waiter_of_another_host_is_not_called(
    desk: Desk, other: Desk, another: Callable[[], Desk]
) -> None:
    dead = another()
    desk.do("update laneway.limits set scope = 'host' where name = 'narrow'")
    for one, host in ((desk, "here"), (other, "there"), (dead, "here")):
        sit_at(one, host)
    for _ in range(4):
        desk.submit("background")
        desk.submit("urgent", priority=10)
    (running,) = start(desk, "low")
    # There the limit is full and stays so: that one is first in line, and of no use here.
    assert len(start(other, "high")) == 1
    assert start(other, "high") == start(dead, "high") == []
    desk.settle(running, "finish")
    assert start(desk, "low") == []
    called = "select worker_id from laneway.limit_turns where called_at is not null"
    assert desk.one(called) == dead.worker
    desk.do("update laneway.limit_turns set called_at = called_at - interval '1 s'")
    assert len(start(desk, "low")) == 1


def test_who_leaves_the_line_waits_for_nobody(desk: Desk, other: Desk) -> None:
    desk.submit("background")
    (running,) = start(desk, "low")
    other.begin()
    other.do("update laneway.limit_turns set used = 1")
    assert claim(desk, "low").state == "ok"
    other.commit()
    assert start(desk, "low") == desk.rows("select 1 from laneway.limit_turns where waits") == []
    desk.settle(running, "finish")


def test_call_of_many_workers_fits_into_a_message(desk: Desk) -> None:
    many = [uuid4() for _ in range(1000)]
    assert desk.do("select laneway.call_workers(%s, %s)", many, desk.worker) == 1


# -- calls -----------------------------------------------------------------------------------


def asks(desk: Desk, claim: Claim) -> str:
    return desk.run(call_limits.acquire(claim, {"narrow": 1})).answer


@pytest.fixture
def callers(desk: Desk, other: Desk) -> Callable[..., Claim]:
    """Jobs that call under a limit of 1, of two workers."""
    limit_to(desk, 1)

    def caller(of: Desk, **more: object) -> Claim:
        return of.running("calls", **more)

    return caller


def test_calls_of_two_processes_alternate(
    desk: Desk, other: Desk, callers: Callable[..., Claim]
) -> None:
    first, *many = [callers(desk) for _ in range(4)]
    late = callers(other)
    assert asks(desk, first) == "granted"
    assert asks(desk, many[0]) == "full"
    assert asks(other, late) == "full"
    desk.run(call_limits.release(first, {"narrow": 0}))
    wait_long(desk)
    assert asks(desk, many[0]) == "granted"
    assert asks(desk, many[1]) == "full"
    desk.run(call_limits.release(many[0], {"narrow": 0}))
    wait_long(desk)
    # The second process has waited longer than the next of the first one.
    assert desk.run(call_limits.acquire(many[1], {"narrow": 1})) == ("full", 0.05)
    assert asks(other, late) == "granted"


def test_call_of_a_job_with_higher_priority_goes_first(
    desk: Desk, other: Desk, callers: Callable[..., Claim]
) -> None:
    first, second = callers(desk), callers(desk)
    late = callers(other, priority=10)
    assert asks(desk, first) == "granted"
    assert asks(desk, second) == "full"
    assert asks(other, late) == "full"
    desk.run(call_limits.release(first, {"narrow": 0}))
    assert asks(desk, second) == "full"
    assert asks(other, late) == "granted"


def test_call_inside_of_a_limit_waits_for_no_turn(
    desk: Desk, other: Desk, callers: Callable[..., Claim]
) -> None:
    limit_to(desk, 2)
    first, second = callers(desk), callers(desk)
    late = callers(other, priority=10)
    assert desk.run(call_limits.acquire(first, {"narrow": 1})).answer == "granted"
    assert desk.run(call_limits.acquire(second, {"narrow": 1})).answer == "granted"
    assert asks(other, late) == "full"
    desk.run(call_limits.release(second, {"narrow": 0}))
    assert desk.run(call_limits.acquire(first, {"narrow": 2}, {"narrow": 1})).answer == "granted"


def test_granted_call_leaves_the_line(
    desk: Desk, other: Desk, callers: Callable[..., Claim]
) -> None:
    first, second = callers(desk), callers(other)
    assert asks(desk, first) == "granted"
    assert asks(other, second) == "full"
    desk.run(call_limits.release(first, {"narrow": 0}))
    assert asks(other, second) == "granted"
    assert desk.rows("select 1 from laneway.limit_turns where waits") == []
