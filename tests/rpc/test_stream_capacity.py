"""The room of a stream: strict, and no lane takes the last place of another."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.rpc.server import stream_capacity
from laneway.rpc.server.stream_capacity import AHEAD_S, MOST_AHEAD, REFUSED_S, StreamCapacity

KINDS = ("async", "thread", "process")
LANES = ("a", "b", "c")


def room(total: int, **sizes: int) -> StreamCapacity:
    made = StreamCapacity(total, {"async": 0, "thread": 0, "process": 0, **sizes})
    made.serve({lane: set(KINDS) for lane in LANES})
    return made


def test_lane_with_jobs_in_hand_leaves_a_place_for_each_other_lane() -> None:
    made = room(10)
    assert made.most("a") == 8
    made.take("a", "async", 8)
    assert made.most("a") == 0
    assert made.most("b") == 1
    made.take("b", "async", 1)
    assert (made.most("a"), made.most("b"), made.most("c")) == (0, 0, 1)
    made.release("a", "async")
    assert (made.most("a"), made.most("b"), made.most("c")) == (1, 1, 2)


def test_with_fewer_places_than_lanes_any_lane_may_have_the_last_one() -> None:
    made = room(1)
    assert [made.most(lane) for lane in LANES] == [1, 1, 1]
    made.take("b", "thread", 1)
    assert [made.most(lane) for lane in LANES] == [0, 0, 0]


def test_jobs_ahead_of_room_leave_a_place_to_each_other_lane() -> None:
    made = room(10)
    assert made.ahead_left("a") is None
    made.allow_ahead({"a": 100})
    assert made.ahead_left("a") == 110
    assert made.ahead_left("b") is None, "its handlers do not end at once"
    made.take_ahead("a", 110)
    assert (made.ahead_left("a"), made.most("a")) == (0, 0)
    assert (made.most("b"), made.most("c")) == (1, 1)
    made.take("b", "async", 1)
    assert (made.most("a"), made.most("b"), made.most("c")) == (0, 0, 1)
    made.release("b", "async")
    made.release("a", "async", 105)
    assert (made.free("b", "async"), made.free("c", "async")) == (4, 4)
    made.allow_ahead({})
    assert made.ahead_left("a") is None
    assert made.free("a", "async") == 3, "no more than there is room for"


def test_lane_without_jobs_gets_a_place_though_another_took_all_jobs_ahead() -> None:
    made = room(10)
    made.allow_ahead({"a": 1000, "b": 50})
    made.take_ahead("a", 1010)
    assert made.ahead_left("b") is None, "as if its handlers did not end at once"
    assert min(made.free("b", "async"), made.most("b")) == 1
    made.take("b", "async", 1)
    assert (made.ahead_left("b"), made.most("b")) == (0, 0)


def test_jobs_ahead_take_no_room_of_other_isolations() -> None:
    made = room(132, **{"async": 100, "thread": 32})
    made.allow_ahead({"a": 1000})
    made.take_ahead("a", 1100)
    for lane in LANES:
        assert made.free(lane, "thread") >= 29
        assert made.most(lane) >= 29
    made.take("a", "thread", made.free("a", "thread"))
    assert (made.free("b", "thread"), made.free("c", "thread")) == (1, 1)
    assert made.free("a", "async") == 0


def test_stream_without_room_gets_no_jobs_ahead() -> None:
    made = room(0)
    made.allow_ahead({"a": 1000})
    assert (made.ahead("a"), made.ahead_left("a"), made.most("a")) == (0, None, 0)


@given(st.integers(3, 12), st.integers(0, 5), st.integers(0, 5), st.data())
def test_no_order_of_jobs_ahead_takes_the_place_of_a_lane(
    total: int, size: int, threads: int, data: st.DataObject
) -> None:
    size, threads = (max(3, min(total, n)) if n else 0 for n in (size, threads))
    made = StreamCapacity(total, {"async": size, "thread": threads})
    made.serve({lane: {"async", "thread"} for lane in LANES})
    taken: list[tuple[str, str]] = []

    def may_claim(lane: str) -> tuple[int, int]:
        ahead = made.ahead_left(lane)
        return made.free(lane, "async") if ahead is None else ahead, made.free(lane, "thread")

    for _ in range(12):
        if data.draw(st.booleans()):
            lanes = data.draw(st.sets(st.sampled_from(LANES)))
            made.allow_ahead(dict.fromkeys(lanes, data.draw(st.integers(1, 30))))
        lane = data.draw(st.sampled_from(LANES))
        is_ahead = made.ahead_left(lane) is not None
        left, free = may_claim(lane)
        room = made.most(lane)
        count = min(data.draw(st.integers(0, left)), room)
        if is_ahead:
            made.take_ahead(lane, count)
        else:
            made.take(lane, "async", count)
        made.take(lane, "thread", min(free, room - count))
        taken += [(lane, "async")] * count + [(lane, "thread")] * min(free, room - count)
        assert made.in_use == len(taken) < total + 30 + len(LANES)
        assert sum(1 for _, kind in taken if kind == "thread") <= (threads or total)
        for other in set(LANES) - {lane for lane, _ in taken}:
            assert max(may_claim(other)) > 0, "it can start at least one job"
            assert made.most(other) > 0
        ended = data.draw(st.lists(st.sampled_from(taken), max_size=40)) if taken else []
        for one in ended:
            if one in taken:
                taken.remove(one)
                made.release(*one)
    for one in taken:
        made.release(*one)
    assert made.in_use == 0


def test_what_is_allowed_ahead_counts_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(stream_capacity, "time", clock)
    made = room(10)
    made.allow_ahead({"a": 5_000_000, "b": 7})
    assert (made.ahead("a"), made.ahead("b")) == (MOST_AHEAD, 7)
    made.refuse_ahead("b")
    assert (made.ahead("a"), made.ahead("b")) == (MOST_AHEAD, 0)
    now += AHEAD_S
    assert made.ahead("a") == 0
    now += REFUSED_S
    made.allow_ahead({"b": 7})
    assert made.ahead("b") == 7


def test_worker_that_stops_has_no_room() -> None:
    made = room(0)
    made.take("a", "async", 2)
    assert [made.free(lane, "async") for lane in LANES] == [0, 0, 0]


def test_isolation_without_handlers_is_not_published() -> None:
    made = StreamCapacity(132, {"async": 100, "thread": 32, "process": 0})
    made.serve({"a": {"async"}, "b": {"thread"}})
    published, _ = made.published()
    assert published["kinds"] == {
        "async": {"used": 0, "total": 100},
        "thread": {"used": 0, "total": 32},
    }
    made.take("a", "process", 1)
    kinds = made.published()[0]["kinds"]
    assert isinstance(kinds, dict)
    assert kinds["process"] == {"used": 1, "total": 132}


@given(st.integers(0, 12), st.integers(0, 5), st.integers(0, 5), st.data())
def test_no_order_of_claims_and_ends_exceeds_any_size(
    total: int, threads: int, processes: int, data: st.DataObject
) -> None:
    made = room(total, thread=threads, process=processes)
    sizes = {"async": total, "thread": threads or total, "process": processes or total}
    taken: list[tuple[str, str]] = []
    for _ in range(20):
        lane, kind = data.draw(st.sampled_from(LANES)), data.draw(st.sampled_from(KINDS))
        count = min(made.free(lane, kind), made.most(lane))
        made.take(lane, kind, count)
        taken += [(lane, kind)] * count
        assert made.in_use == len(taken) <= total
        for each in KINDS:
            assert sum(1 for _, one in taken if one == each) <= sizes[each]
        for ended in data.draw(st.sets(st.integers(0, max(0, len(taken) - 1)), max_size=3)):
            if ended < len(taken):
                made.release(*taken.pop(ended))
