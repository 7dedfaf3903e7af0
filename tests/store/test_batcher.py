"""Concurrent calls become one statement; an invalid item fails only its own call."""

from __future__ import annotations

import asyncio

import pytest

from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import batcher
from laneway.store.aborted_statements import StatementAborted
from laneway.store.batcher import Batcher
from tests.support.worker_harness import wait_until

IN_TIME = 10.0


class FakeStatement:
    """A fake statement: returns each item in capitals and records every batch."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.busy: set[str] = set()
        self.poison: set[str] = set()
        self.aborted: set[str] = set()
        self.is_away = False

    async def work(self, items: list[str]) -> list[str]:
        self.asked.append(items)
        await self.is_open.wait()
        if self.is_away:
            raise DatabaseUnavailable("away")
        for item in items:
            if item in self.aborted:
                raise StatementAborted(f"{item} waited too long")
            if item in self.poison:
                raise InvalidInput(item, "is poison")
        return ["busy" if item in self.busy else item.upper() for item in items]


@pytest.fixture
def statement() -> FakeStatement:
    return FakeStatement()


@pytest.fixture
def together(statement: FakeStatement) -> Batcher[str, str]:
    return Batcher(statement.work, lambda answer: answer == "busy", most=5)


async def test_calls_during_running_statement_join_next_batch(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.is_open.clear()
    calls = [asyncio.ensure_future(together.run([f"a{i}", f"b{i}"], IN_TIME)) for i in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = asyncio.ensure_future(together.run(["late"], IN_TIME))
    await asyncio.sleep(0)
    statement.is_open.set()
    assert await asyncio.gather(*calls) == [["A0", "B0"], ["A1", "B1"], ["A2", "B2"]]
    assert await late == ["LATE"]
    # Two calls of two fit into five, one more would not.
    assert statement.asked == [["a0", "b0", "a1", "b1"], ["a2", "b2", "late"]]


async def test_large_submits_are_not_batched(statement: FakeStatement) -> None:
    together: Batcher[str, str] = Batcher(
        statement.work, lambda answer: answer == "busy", most=5, weigh=len
    )
    calls = (["aa"], ["bbb"], ["cccc"], ["dddddddd"], ["e"])
    results = await asyncio.gather(*(together.run(items, IN_TIME) for items in calls))
    assert results == [[items[0].upper()] for items in calls]
    assert statement.asked == [["aa", "bbb"], ["cccc"], ["dddddddd"], ["e"]]


async def test_nothing_is_asked_for_nothing(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    assert await together.run([], IN_TIME) == []
    assert statement.asked == []


async def test_poison_in_one_call_does_not_fail_the_others(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.poison = {"p"}
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
    assert ["q"] in statement.asked, "what stands beside it in its call is done"


async def test_only_busy_items_are_retried(
    statement: FakeStatement, together: Batcher[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "BUSY_S", 0.001)
    statement.busy = {"b"}
    call = asyncio.ensure_future(together.run(["a", "b", "c"], IN_TIME))
    await wait_until(lambda: len(statement.asked) >= 3)
    statement.busy = set()
    assert await call == ["A", "B", "C"]
    assert statement.asked[1:] == [["b"]] * (len(statement.asked) - 1)


async def test_items_busy_until_timeout_are_reported(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.busy = {"b"}
    assert await together.run(["a", "b"], 0.0) == ["A", "busy"]


async def test_unavailable_database_fails_all_calls_at_once(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.is_away = True
    results = await asyncio.gather(
        together.run(["a"], IN_TIME), together.run(["b"], IN_TIME), return_exceptions=True
    )
    assert all(isinstance(one, DatabaseUnavailable) for one in results)
    statement.is_away = False
    assert await together.run(["c"], IN_TIME) == ["C"]


async def test_cancelled_call_is_not_sent(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.is_open.clear()
    first = asyncio.ensure_future(together.run(["a"], IN_TIME))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone = asyncio.ensure_future(together.run(["b"], IN_TIME))
    await asyncio.sleep(0)
    gone.cancel()
    statement.is_open.set()
    assert await first == ["A"]
    assert await together.run(["c"], IN_TIME) == ["C"]
    assert statement.asked == [["a"], ["c"]]


async def test_close_ends_all_waiting_calls(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.is_open.clear()
    calls = [asyncio.ensure_future(together.run([name], IN_TIME)) for name in "ab"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await together.close()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, DatabaseUnavailable) for one in results)


async def test_busy_call_fails_when_the_batcher_closes(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.busy = {"a"}
    call = asyncio.ensure_future(together.run(["a"], IN_TIME))
    await wait_until(lambda: len(statement.asked) == 1)
    await together.close()
    with pytest.raises(DatabaseUnavailable):
        await call
    assert statement.asked == [["a"]]


async def test_batch_that_fails_together_is_run_one_by_one() -> None:
    async def work(items: list[str]) -> list[str]:
        if len(items) > 1:
            raise RuntimeError("deadlock")
        return [items[0].upper()]

    together: Batcher[str, str] = Batcher(work, lambda answer: answer == "busy")
    assert await together.run(["a", "b"], IN_TIME) == ["A", "B"]


async def test_aborted_statement_is_tried_again_for_each_call(statement: FakeStatement) -> None:
    together: Batcher[str, str] = Batcher(statement.work, splits_aborted=True)
    statement.aborted = {"odd"}
    calls = (together.run([item], IN_TIME) for item in ("a", "odd", "b"))
    first, odd, last = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, last) == (["A"], ["B"])
    assert isinstance(odd, StatementAborted)
    assert statement.asked == [["a", "odd", "b"], ["a"], ["odd"], ["b"]]


async def test_calls_are_not_tried_one_by_one_after_two_aborts(statement: FakeStatement) -> None:
    together: Batcher[str, str] = Batcher(statement.work, splits_aborted=True)
    items = [f"i{n}" for n in range(10)]
    statement.aborted = set(items)
    calls = (together.run([item], IN_TIME) for item in items)
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, StatementAborted) for each in found)
    assert statement.asked == [items, ["i0"], ["i1"]]
    # The next batch begins with all of them again.
    statement.aborted = set()
    assert await together.run(["i0"], IN_TIME) == ["I0"]


async def test_aborted_statement_fails_all_its_calls_unless_asked(
    statement: FakeStatement, together: Batcher[str, str]
) -> None:
    statement.aborted = {"odd"}
    calls = (together.run([item], IN_TIME) for item in ("a", "odd"))
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in found] == [StatementAborted, StatementAborted]
    assert statement.asked == [["a", "odd"]]
