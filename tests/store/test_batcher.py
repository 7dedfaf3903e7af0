"""Calls that arrive together become one statement; what is wrong with one is its own."""

from __future__ import annotations

import asyncio

import pytest

from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import batcher
from laneway.store.batcher import Batcher
from tests.engine.workshop import until

IN_TIME = 10.0


class Clerk:
    """Answers items with their own text; keeps what it was asked in one go."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.busy: set[str] = set()
        self.poison: set[str] = set()
        self.is_away = False

    async def work(self, items: list[str]) -> list[str]:
        self.asked.append(items)
        await self.is_open.wait()
        if self.is_away:
            raise DatabaseUnavailable("away")
        for item in items:
            if item in self.poison:
                raise InvalidInput(item, "is poison")
        return ["busy" if item in self.busy else item.upper() for item in items]


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


@pytest.fixture
def together(clerk: Clerk) -> Batcher[str, str]:
    return Batcher(clerk.work, lambda answer: answer == "busy", most=5)


async def test_calls_during_running_statement_join_next_batch(
    clerk: Clerk, together: Batcher[str, str]
) -> None:
    clerk.is_open.clear()
    calls = [asyncio.ensure_future(together.run([f"a{i}", f"b{i}"], IN_TIME)) for i in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = asyncio.ensure_future(together.run(["late"], IN_TIME))
    await asyncio.sleep(0)
    clerk.is_open.set()
    assert await asyncio.gather(*calls) == [["A0", "B0"], ["A1", "B1"], ["A2", "B2"]]
    assert await late == ["LATE"]
    # Two calls of two fit into five, one more would not.
    assert clerk.asked == [["a0", "b0", "a1", "b1"], ["a2", "b2", "late"]]


async def test_large_submits_are_not_batched(clerk: Clerk) -> None:
    together: Batcher[str, str] = Batcher(
        clerk.work, lambda answer: answer == "busy", most=5, weigh=len
    )
    calls = (["aa"], ["bbb"], ["cccc"], ["dddddddd"], ["e"])
    told = await asyncio.gather(*(together.run(items, IN_TIME) for items in calls))
    assert told == [[items[0].upper()] for items in calls]
    assert clerk.asked == [["aa", "bbb"], ["cccc"], ["dddddddd"], ["e"]]


async def test_nothing_is_asked_for_nothing(clerk: Clerk, together: Batcher[str, str]) -> None:
    assert await together.run([], IN_TIME) == []
    assert clerk.asked == []


async def test_poison_in_one_call_does_not_fail_the_others(
    clerk: Clerk, together: Batcher[str, str]
) -> None:
    clerk.poison = {"p"}
    good, bad, fine = await asyncio.gather(
        together.run(["a"], IN_TIME),
        together.run(["p", "q"], IN_TIME),
        together.run(["b"], IN_TIME),
        return_exceptions=True,
    )
    assert good == ["A"]
    assert fine == ["B"]
    assert isinstance(bad, InvalidInput)
    assert bad.field == "p"
    assert ["q"] in clerk.asked, "what stands beside it in its call is done"


async def test_only_busy_items_are_retried(
    clerk: Clerk, together: Batcher[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "BUSY_S", 0.001)
    clerk.busy = {"b"}
    call = asyncio.ensure_future(together.run(["a", "b", "c"], IN_TIME))
    await until(lambda: len(clerk.asked) >= 3)
    clerk.busy = set()
    assert await call == ["A", "B", "C"]
    assert clerk.asked[1:] == [["b"]] * (len(clerk.asked) - 1)


async def test_items_busy_until_timeout_are_reported(
    clerk: Clerk, together: Batcher[str, str]
) -> None:
    clerk.busy = {"b"}
    assert await together.run(["a", "b"], 0.0) == ["A", "busy"]


async def test_unavailable_database_fails_all_calls_at_once(
    clerk: Clerk, together: Batcher[str, str]
) -> None:
    clerk.is_away = True
    told = await asyncio.gather(
        together.run(["a"], IN_TIME), together.run(["b"], IN_TIME), return_exceptions=True
    )
    assert all(isinstance(one, DatabaseUnavailable) for one in told)
    clerk.is_away = False
    assert await together.run(["c"], IN_TIME) == ["C"]


async def test_cancelled_call_is_not_sent(clerk: Clerk, together: Batcher[str, str]) -> None:
    clerk.is_open.clear()
    first = asyncio.ensure_future(together.run(["a"], IN_TIME))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone = asyncio.ensure_future(together.run(["b"], IN_TIME))
    await asyncio.sleep(0)
    gone.cancel()
    clerk.is_open.set()
    assert await first == ["A"]
    assert await together.run(["c"], IN_TIME) == ["C"]
    assert clerk.asked == [["a"], ["c"]]


async def test_close_ends_all_waiting_calls(clerk: Clerk, together: Batcher[str, str]) -> None:
    clerk.is_open.clear()
    calls = [asyncio.ensure_future(together.run([name], IN_TIME)) for name in "ab"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await together.close()
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, DatabaseUnavailable) for one in told)


async def test_busy_call_fails_when_the_batcher_closes(
    clerk: Clerk, together: Batcher[str, str]
) -> None:
    clerk.busy = {"a"}
    call = asyncio.ensure_future(together.run(["a"], IN_TIME))
    await until(lambda: len(clerk.asked) == 1)
    await together.close()
    with pytest.raises(DatabaseUnavailable):
        await call
    assert clerk.asked == [["a"]]


async def test_batch_that_fails_together_is_run_one_by_one() -> None:
    async def work(items: list[str]) -> list[str]:
        if len(items) > 1:
            raise RuntimeError("deadlock")
        return [items[0].upper()]

    together: Batcher[str, str] = Batcher(work, lambda answer: answer == "busy")
    assert await together.run(["a", "b"], IN_TIME) == ["A", "B"]
