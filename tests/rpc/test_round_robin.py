"""Wake-ups go from one claim loop to the next, and work without a free loop is remembered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laneway.rpc.server import round_robin as module
from laneway.rpc.server.round_robin import RoundRobin
from tests.support.worker_harness import wait_until


class Place:
    """A loop with this much room for some job types, and scripted answers."""

    lane = "default"

    def __init__(self, job_types: set[str], room: int = 10) -> None:
        self.job_types = job_types
        self.room = room
        self.has_enough_room = True
        self.calls: list[int] = []

    def wants(self, job_types: set[str]) -> bool:
        return self.room > 0 and bool(self.job_types & job_types)

    def start_claim(self, share: int) -> None:
        self.calls.append(share)


@pytest.fixture
def rotation() -> Iterator[RoundRobin]:
    rotation = RoundRobin(lambda job_type: "default")
    yield rotation
    rotation.close()


def joined(rotation: RoundRobin, *places: Place) -> tuple[Place, ...]:
    """They have their turn in this order."""
    for place in reversed(places):
        rotation.join(place)
    return places


def calls(*places: Place) -> list[int]:
    return [len(place.calls) for place in places]


def test_one_is_called_and_the_next_time_the_next(rotation: RoundRobin) -> None:
    places = joined(rotation, *(Place({"t"}) for _ in range(3)))
    for n in range(6):
        rotation.wake(["t"])
        assert calls(*places) == [(n + 3) // 3, (n + 2) // 3, (n + 1) // 3]
        rotation.done(places[n % 3], tried={"t"})


def test_while_there_is_more_the_next_is_called_and_may_take_twice_as_much(
    rotation: RoundRobin,
) -> None:
    places = joined(rotation, *(Place({"t"}, room=40) for _ in range(4)))
    rotation.wake(["t"])
    for place in places:
        rotation.done(place, tried={"t"}, goes_on=True)
    assert [place.calls[0] for place in places] == [10, 20, 40, 80]
    rotation.done(places[0], tried={"t"})
    assert calls(*places) == [2, 1, 1, 1]


def test_wake_up_during_claim_is_not_lost(rotation: RoundRobin) -> None:
    first, second = joined(rotation, Place({"t"}), Place({"t"}))
    rotation.wake(["t"])
    rotation.wake(["t"])
    assert calls(first, second) == [1, 0]
    rotation.done(first, tried={"t"})
    assert calls(first, second) == [1, 1]
    rotation.done(second, tried={"t"})
    assert calls(first, second) == [1, 1]


def test_loop_that_leaves_while_it_claims_passes_the_news_on(rotation: RoundRobin) -> None:
    first, second = joined(rotation, Place({"t"}), Place({"t"}))
    rotation.wake(["t"])
    rotation.leave(first)
    assert calls(first, second) == [1, 1]
    rotation.done(first, tried={"t"})
    rotation.done(second, tried={"t"})
    rotation.wake(["t"])
    assert calls(first, second) == [1, 2]


def test_type_is_offered_in_turn_until_a_claim_is_short(
    rotation: RoundRobin,
) -> None:
    apples, pears, both = joined(rotation, Place({"a"}), Place({"p"}), Place({"a", "p"}))
    rotation.wake(["a", "p"])
    rotation.done(apples, tried={"a"})
    rotation.done(pears, tried={"p"})
    assert calls(apples, pears, both) == [1, 1, 0]


def test_work_without_room_waits_for_first_free_loop(rotation: RoundRobin) -> None:
    first, second = joined(rotation, Place({"t"}, room=0), Place({"t"}, room=0))
    rotation.wake(["t"])
    second.room = 5
    rotation.has_room()
    assert calls(first, second) == [0, 1]
    rotation.done(second, tried={"t"})
    first.room = 5
    rotation.has_room()
    assert calls(first, second) == [0, 1]


async def test_little_room_is_collected_for_a_moment(
    rotation: RoundRobin,
) -> None:
    (place,) = joined(rotation, Place({"t"}, room=0))
    rotation.wake(["t"])
    place.room, place.has_enough_room = 1, False
    rotation.has_room()
    assert calls(place) == [0]
    await wait_until(lambda: calls(place) == [1])
    rotation.done(place, tried={"t"}, goes_on=True)
    assert calls(place) == [1]
    place.has_enough_room = True
    rotation.has_room()
    assert calls(place) == [2]


def test_full_lanes_are_tried_again_when_something_ends(rotation: RoundRobin) -> None:
    (place,) = joined(rotation, Place({"t"}))
    rotation.wake(["t"])
    rotation.done(place, tried={"t"}, is_blocked=True)
    assert calls(place) == [1]
    rotation.has_slots()
    assert calls(place) == [2]
    rotation.done(place, tried={"t"})
    rotation.has_slots()
    assert calls(place) == [2]


async def test_claim_that_failed_and_one_that_must_wait_are_tried_again_later(
    rotation: RoundRobin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    (place,) = joined(rotation, Place({"t"}))
    rotation.wake(["t"])
    rotation.failed(place)
    assert calls(place) == [1]
    await wait_until(lambda: calls(place) == [2])
    rotation.done(place, tried={"t"}, wait_s=0.01)
    assert calls(place) == [2]
    await wait_until(lambda: calls(place) == [3])
    rotation.done(place, tried=None, wait_s=0.01)
    assert calls(place) == [3]
    await wait_until(lambda: calls(place) == [4])


def test_closed_round_robin_calls_no_loop(rotation: RoundRobin) -> None:
    (place,) = joined(rotation, Place({"t"}))
    rotation.close()
    rotation.wake(["t"])
    rotation.wake_all()
    assert calls(place) == [0]
