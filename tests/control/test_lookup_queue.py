"""The queue of lookups after many wrong secrets: bounded, and fair to addresses."""

from __future__ import annotations

import asyncio

import pytest

from laneway.config.settings import Settings
from laneway.control.lookup_queue import LookupQueue
from laneway.control.throttle import Throttle
from laneway.errors import RateLimited


async def test_addresses_take_turns() -> None:
    queue, order = LookupQueue(at_once=1), list[str]()

    async def look(address: str) -> None:
        async with queue.turn(address):
            order.append(address)
            await asyncio.sleep(0)

    looks = [asyncio.create_task(look("guesser")) for _ in range(100)]
    await asyncio.sleep(0)
    looks += [asyncio.create_task(look(other)) for other in ("ann", "bob")]
    await asyncio.gather(*looks)
    assert {order.index("ann"), order.index("bob")} < set(range(6))
    assert len(order) == 102
    assert len(queue) == 0


async def test_line_is_bounded_and_the_longest_gives_way() -> None:
    queue, done = LookupQueue(at_once=1, most=4), asyncio.Event()

    async def look(address: str) -> str:
        async with queue.turn(address):
            await done.wait()
            return address

    looks = [asyncio.create_task(look("guesser")) for _ in range(5)]
    await asyncio.sleep(0)
    assert len(queue) == 4
    looks += [asyncio.create_task(look(other)) for other in ("ann", "bob")]
    await asyncio.sleep(0)
    assert len(queue) == 4
    done.set()
    ended = await asyncio.gather(*looks, return_exceptions=True)
    assert {one for one in ended if isinstance(one, str)} == {"guesser", "ann", "bob"}
    assert sum(isinstance(one, RateLimited) for one in ended) == 2


async def test_flood_over_one_connection_gives_way_to_others_of_its_network() -> None:
    queue, done = LookupQueue(at_once=1, most=4), asyncio.Event()

    async def look(peer: str) -> str:
        async with queue.turn("office", peer):
            await done.wait()
            return peer

    looks = [asyncio.create_task(look("guesser")) for _ in range(5)]
    await asyncio.sleep(0)
    looks += [asyncio.create_task(look(peer)) for peer in ("ann", "bob")]
    await asyncio.sleep(0)
    assert len(queue) == 4
    done.set()
    ended = await asyncio.gather(*looks, return_exceptions=True)
    assert ended[-2:] == ["ann", "bob"]
    assert sum(isinstance(one, RateLimited) for one in ended[:5]) == 2


async def test_disconnected_caller_yields_first() -> None:
    queue, done, gone = LookupQueue(at_once=1, most=4), asyncio.Event(), set[int]()

    async def look(number: int) -> int:
        async with queue.turn("office", is_gone=lambda: number in gone):
            await done.wait()
            return number

    looks = [asyncio.create_task(look(number)) for number in range(5)]
    await asyncio.sleep(0)
    gone |= {1, 2, 3}
    looks += [asyncio.create_task(look(number)) for number in (5, 6, 7)]
    await asyncio.sleep(0)
    assert len(queue) == 4
    gone.add(5)
    done.set()
    ended = await asyncio.gather(*looks, return_exceptions=True)
    # A disconnected caller causes no lookup.
    assert [one for one in ended if isinstance(one, int)] == [0, 4, 6, 7]
    assert len(queue) == 0


async def test_cancelled_waiter_gives_way_without_an_error_for_the_next() -> None:
    queue, done = LookupQueue(at_once=1, most=3), asyncio.Event()

    async def look(address: str) -> str:
        async with queue.turn(address):
            await done.wait()
            return address

    looks = [asyncio.create_task(look("guesser")) for _ in range(4)]
    await asyncio.sleep(0)
    # Cancelled, but still in the queue when the next one arrives.
    looks.append(asyncio.create_task(look("ann")))
    looks[-2].cancel()
    await asyncio.sleep(0)
    done.set()
    ended = await asyncio.gather(*looks, return_exceptions=True)
    assert ended[-1] == "ann"
    assert ended[:-2] == ["guesser"] * 3
    assert isinstance(ended[-2], asyncio.CancelledError)
    assert len(queue) == 0


async def test_caller_that_leaves_queue_takes_no_turn() -> None:
    queue, done = LookupQueue(at_once=1), asyncio.Event()

    async def look() -> None:
        async with queue.turn("ann"):
            await done.wait()

    looks = [asyncio.create_task(look()) for _ in range(4)]
    await asyncio.sleep(0)
    looks[1].cancel()
    await asyncio.sleep(0)
    assert len(queue) == 2
    done.set()
    looks[2].cancel()
    await asyncio.gather(*looks, return_exceptions=True)
    async with asyncio.timeout(30):
        await look()
    assert len(queue) == 0


async def test_valid_secret_from_another_address_does_not_wait_for_guesses() -> None:
    throttle = Throttle(Settings.load(failed_logins_per_minute=1))
    throttle.count_failure("192.0.2.1")
    throttle.count_failure("198.51.100.1")
    looked = list[str]()

    async def look(address: str) -> None:
        looked.append(address)
        await asyncio.sleep(0)

    def check(address: str) -> asyncio.Task[None]:
        asked = throttle.check(address, lambda: look(address), is_known=False)
        return asyncio.ensure_future(asked)

    going = [check("192.0.2.1") for _ in range(200)]
    await asyncio.sleep(0)
    going.append(check("198.51.100.1"))
    await asyncio.gather(*going)
    assert looked.index("198.51.100.1") < 10


async def test_line_without_end_is_refused() -> None:
    throttle = Throttle(Settings.load(failed_logins_per_minute=1))
    throttle.count_failure("192.0.2.1")
    done = asyncio.Event()

    going = [
        asyncio.ensure_future(throttle.check("192.0.2.1", done.wait, is_known=False))
        for _ in range(8002)
    ]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await throttle.check("192.0.2.1", done.wait, is_known=False)
    done.set()
    await asyncio.gather(*going, return_exceptions=True)


@pytest.mark.parametrize("is_shared", [True, False])
async def test_few_calls_of_one_connection_are_not_a_flood(is_shared: bool) -> None:
    queue, done = LookupQueue(at_once=1), asyncio.Event()

    async def look(address: str, peer: str) -> str:
        async with queue.turn(address, peer):
            await done.wait()
            return peer

    def check(number: int) -> asyncio.Task[str]:
        address = "office" if is_shared else f"192.0.2.{number}"
        return asyncio.create_task(look(address, f"peer {number}"))

    first = [asyncio.create_task(look("other", "worker")) for _ in range(3)]
    going = [check(number) for number in range(7998)]
    await asyncio.sleep(0)
    assert len(queue) == 8000
    going += [check(number) for number in range(7998, 8010)]
    await asyncio.sleep(0)
    done.set()
    assert await asyncio.gather(*first) == ["worker"] * 3
    ended = await asyncio.gather(*going, return_exceptions=True)
    assert sum(isinstance(one, RateLimited) for one in ended) == 12


async def test_full_line_of_small_holders_refuses_the_newest() -> None:
    queue, done = LookupQueue(at_once=1), asyncio.Event()

    async def look(number: int) -> None:
        async with queue.turn(number, number):
            await done.wait()

    going = [asyncio.create_task(look(number)) for number in range(8001)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await look(8001)
    going[7].cancel()
    await asyncio.sleep(0)
    assert len(queue) == 7999
    done.set()
    ended = await asyncio.gather(*going, return_exceptions=True)
    assert ended.count(None) == 8000
    assert len(queue) == 0


async def test_refusal_checks_few_waiting_callers() -> None:
    queue, done, looks = LookupQueue(at_once=1), asyncio.Event(), list[int]()

    async def look(number: int) -> None:
        def is_gone() -> bool:
            looks.append(number)
            return False

        async with queue.turn("office", is_gone=is_gone):
            await done.wait()

    going = [asyncio.create_task(look(number)) for number in range(8001)]
    await asyncio.sleep(0)
    for number in range(400):
        with pytest.raises(RateLimited):
            await look(number)
    assert len(looks) <= 400 * 50
    # Each is checked in turn.
    assert len(set(looks)) == 8000
    done.set()
    await asyncio.gather(*going)
