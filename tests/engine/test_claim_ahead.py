"""Jobs claimed ahead: never more than end soon, none held for long, nothing but plain jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.engine.claim.capacity import MAX_CLAIM, Capacity
from laneway.engine.claim.claim_ahead import (
    AHEAD_S,
    ENOUGH,
    KEEP_S,
    MOST_LANES,
    MOST_SENT,
    PAUSE_S,
    ClaimAhead,
    HandlerPace,
)
from laneway.engine.run.executor import Executor
from laneway.rpc.messages import MAX_LIMITS
from laneway.store.leases import Assignment

QUICK_S = 0.00002


class RecordedStarts:
    """An executor that only notes what it is given."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.stopped: list[tuple[int, int, str]] = []
        self.timeouts: dict[Claim, float] = {}
        self.active: dict[tuple[int, int], Any] = {}
        self.inline_tasks = SimpleNamespace(tasks=set(), pace=None)

    def start(
        self,
        jobs: Sequence[Assignment],
        lane: str,
        timeouts: Mapping[Claim, float] | None = None,
    ) -> None:
        self.timeouts.update(timeouts or {})
        self.started += [job.claim.seq for job in jobs]
        self.active.update({(job.claim.seq, job.claim.attempt): lane for job in jobs})

    def stop_by_claim(self, seq: int, attempt: int, answer: str) -> None:
        assert (seq, attempt) in self.active
        self.stopped.append((seq, attempt, answer))


class AheadUnderTest:
    """A ClaimAhead of lanes `a` and `b`, with its clock."""

    def __init__(self, size: int = 10, most: int | None = None, **bounds: Any) -> None:
        self.now = 1000.0
        self.returned: list[int] = []
        self.executor = RecordedStarts()
        self.capacity = Capacity({"async": size}, **bounds)
        self.capacity.serve({"a": {"async"}, "b": {"async"}})
        self.ahead = ClaimAhead(
            self.capacity,
            cast(Executor, self.executor),
            lambda jobs: self.returned.extend(job.claim.seq for job in jobs),
            most,
            lambda: self.now,
        )

    def make_quick(self, lane: str = "a", each_s: float = QUICK_S) -> None:
        self.ahead.ended_at_once(lane, ENOUGH, ENOUGH * each_s)

    def end(self, count: int, lane: str = "a") -> None:
        """End as many of the started handlers."""
        for pair in list(self.executor.active)[:count]:
            del self.executor.active[pair]
            self.capacity.release(lane, "async")


def jobs(*seqs: int, losses: int = 0) -> list[Assignment]:
    return [
        Assignment(Claim(seq, uuid4(), 1), 0, "t", "{}", None, 0, True, losses=losses)
        for seq in seqs
    ]


async def test_lane_claims_ahead_once_many_handlers_ended_at_once() -> None:
    made = AheadUnderTest()
    assert made.ahead.room("a") is None
    made.ahead.ended_at_once("a", ENOUGH - 1, QUICK_S)
    assert made.ahead.room("a") is None
    made.ahead.ended_at_once("a", 1, QUICK_S)
    assert made.ahead.room("a") == MAX_CLAIM
    assert made.ahead.room("b") is None, "each lane has its own pace"


async def test_handler_that_waits_ends_claims_ahead_of_its_lane() -> None:
    made = AheadUnderTest()
    made.make_quick()
    made.make_quick("b")
    made.ahead.waited("a")
    assert made.ahead.room("a") is None
    assert made.ahead.room("b") is not None


async def test_no_more_is_claimed_ahead_than_ends_soon() -> None:
    made = AheadUnderTest()
    made.make_quick(each_s=0.005)
    assert made.ahead.room("a") == pytest.approx(AHEAD_S / 0.005, abs=1)
    made.ahead.ended_at_once("a", 1, 0.04)
    assert made.ahead.room("a") == 1, "a slow one counts at once"
    made.ahead.ended_at_once("a", 1, 10.0)
    assert made.ahead.room("a") == 1


async def test_set_concurrency_bounds_held_and_running_jobs_together() -> None:
    made = AheadUnderTest(size=10, most=10)
    made.make_quick()
    assert made.ahead.room("a") == 10
    made.capacity.take("a", "async", 4)
    assert made.ahead.room("a") == 6
    made.capacity.take("a", "async", 6)
    assert made.ahead.room("a") == 0


async def test_targets_name_the_lanes_whose_handlers_end_at_once() -> None:
    made = AheadUnderTest()
    assert made.ahead.targets() == {}
    made.make_quick("a")
    made.make_quick("b", each_s=AHEAD_S / 7)
    assert made.ahead.targets() == {"a": MAX_CLAIM, "b": 7}
    made.ahead.put("a", jobs(*range(20)))
    assert made.ahead.targets()["a"] == MAX_CLAIM, "not less by those that wait here"
    made.ahead.waited("a")
    assert made.ahead.targets() == {"b": 7}
    made.ahead.refuse("b")
    assert made.ahead.targets() == {}


async def test_results_under_way_add_no_more_than_may_come_at_once() -> None:
    made = AheadUnderTest()
    made.make_quick("a")
    made.make_quick("b", each_s=0.001)
    allowed = made.ahead.targets(unsettled=1500)
    assert allowed["a"] == MOST_SENT
    assert allowed["b"] <= KEEP_S / 2 / 0.001, "else they would wait too long, and go back"


async def test_worker_allows_jobs_ahead_in_no_more_lanes_than_a_call_names() -> None:
    made = AheadUnderTest()
    for n in range(MOST_LANES + 20):
        made.make_quick(f"lane-{n}")
    assert len(made.ahead.targets()) == MOST_LANES == MAX_LIMITS


async def test_lane_keeps_its_place_while_a_quicker_one_claims_ahead() -> None:
    made = AheadUnderTest()
    made.make_quick("a")
    made.make_quick("b", each_s=AHEAD_S / 20)
    made.ahead.put("a", jobs(*range(500)))
    assert made.ahead.room("a") is not None
    assert made.ahead.room("b") is None, "it claims what it has room for"
    assert made.capacity.free("b", "async") == 1
    made.ahead.put("b", jobs(*range(500, 520)))
    assert made.ahead.room("b") == 0, "its jobs that wait come first"


async def test_timeouts_of_a_server_go_with_their_jobs() -> None:
    made = AheadUnderTest(size=3)
    ahead = jobs(1, 2, 3, 4)
    timeouts = {ahead[0].claim: 1.0, ahead[3].claim: 4.0}
    made.ahead.put("a", ahead, timeouts)
    made.end(2)
    made.ahead.feed()
    assert made.executor.started == [1, 2, 3, 4]
    assert made.executor.timeouts == timeouts


@pytest.mark.parametrize("bound", [{"slots": 5}, {"max_jobs": 5}])
async def test_nothing_is_claimed_ahead_with_slots_or_max_jobs(bound: dict[str, int]) -> None:
    made = AheadUnderTest(**bound)
    made.make_quick()
    assert made.ahead.room("a") is None


async def test_nothing_is_claimed_ahead_while_slow_handlers_take_the_room() -> None:
    made = AheadUnderTest()
    made.make_quick()
    made.executor.inline_tasks.tasks.update(range(6))
    assert made.ahead.room("a") is None


async def test_next_claim_comes_when_half_has_started() -> None:
    made = AheadUnderTest(size=10)
    made.make_quick(each_s=AHEAD_S / 20)
    made.ahead.put("a", jobs(*range(20)))
    assert made.ahead.held == 11, "one place is kept for the other lane"
    assert made.ahead.room("a") == 0
    made.end(9)
    made.ahead.feed()
    assert made.ahead.held == 2
    assert made.ahead.room("a") == 18


async def test_jobs_start_in_order_and_only_as_room_becomes_free() -> None:
    made = AheadUnderTest(size=3)
    made.make_quick()
    made.ahead.put("a", jobs(1, 2, 3))
    made.ahead.put("a", jobs(4, 5))
    assert made.executor.started == [1, 2]
    made.end(1)
    made.ahead.feed()
    assert made.executor.started == [1, 2, 3]
    assert made.capacity.free("b", "async") == 1, "the other lane can always start one"
    made.end(2)
    made.ahead.feed()
    assert made.executor.started == [1, 2, 3, 4, 5]
    assert made.returned == []


async def test_room_promised_to_a_claim_under_way_is_left_to_it() -> None:
    made = AheadUnderTest(size=10)
    made.make_quick()
    with made.ahead.promised(made.capacity.free("b", "async")):
        made.ahead.put("a", jobs(1, 2, 3))
        assert made.executor.started == []
        made.capacity.take("b", "async", 9)
        assert made.capacity.used("async") == 9
    made.ahead.feed()
    assert made.executor.started == [1]
    assert made.capacity.used("async") == 10


async def test_jobs_without_room_go_back_in_time_and_none_is_claimed_ahead() -> None:
    """Handlers became slow, or one of them blocked the event loop."""
    made = AheadUnderTest(size=3)
    made.make_quick()
    made.ahead.put("a", jobs(1, 2, 3, 4))
    made.now += KEEP_S / 2
    made.ahead.feed()
    assert made.returned == []
    made.now += KEEP_S
    made.end(2)
    made.ahead.feed()
    assert (made.returned, made.executor.started) == ([3, 4], [1, 2])
    assert made.ahead.held == 0
    made.make_quick()
    assert made.ahead.room("a") is None
    made.now += PAUSE_S[0]
    assert made.ahead.room("a") is not None


async def test_timer_returns_jobs_that_wait_for_room() -> None:
    made = AheadUnderTest(size=3)
    made.ahead.put("a", jobs(1, 2, 3))
    made.now += 2 * KEEP_S
    deadline = asyncio.get_running_loop().time() + 60
    while not made.returned:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)
    assert made.returned == [3]


async def test_suspects_go_back_and_end_claims_ahead() -> None:
    made = AheadUnderTest()
    made.make_quick()
    made.ahead.put("a", [*jobs(1), *jobs(2, losses=1), *jobs(3)])
    assert (made.returned, made.executor.started) == ([2], [1, 3])
    made.make_quick()
    assert made.ahead.room("a") is None, "the next claim takes it as any other worker would"


async def test_job_cancelled_or_fenced_while_it_waits_is_stopped_first() -> None:
    made = AheadUnderTest(size=3)
    made.ahead.put("a", jobs(1, 2, 3, 4))
    made.ahead.stop(3, 1, "cancel_requested")
    made.ahead.stop(1, 1, "cancel_requested")
    assert made.executor.stopped == [], "what runs is stopped elsewhere"
    made.end(2)
    made.ahead.feed()
    assert made.executor.started == [1, 2, 3, 4]
    assert made.executor.stopped == [(3, 1, "cancel_requested")]


async def test_stop_of_a_worker_returns_all_that_wait() -> None:
    made = AheadUnderTest(size=3)
    made.ahead.put("a", jobs(1, 2, 3, 4))
    made.ahead.return_all()
    assert (made.returned, made.ahead.held) == ([3, 4], 0)
    made.end(2)
    made.ahead.feed()
    assert made.executor.started == [1, 2]


def test_longest_pause_is_bounded() -> None:
    pace = HandlerPace()
    for _ in range(20):
        pace.pause(0.0)
    assert pace.paused_until == PAUSE_S[1]
