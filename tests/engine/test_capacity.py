"""A worker publishes its room by kind, and since when it has none."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway import Context, SyncContext
from laneway.control import explain, workers
from laneway.domain.overview import RoomUse
from laneway.engine.claim.capacity import Capacity
from laneway.store.database import Database
from laneway.store.statement import Statement
from tests.support.worker_harness import WorkerHarness, wait_until


def full(capacity: Capacity) -> Any:
    return capacity.published()["full"]


def test_room_is_full_for_lane_that_found_none() -> None:
    capacity = Capacity({"async": 2, "thread": 1, "process": 1})
    capacity.serve({"a": {"async"}, "b": {"async", "thread"}})
    assert full(capacity) == {}
    capacity.take("a", "async", 1)
    assert capacity.free("a", "async") == 0, "the last place is for the other lane"
    assert set(full(capacity)["async"]) == {"a"}
    assert capacity.free("b", "async") == 1
    capacity.take("b", "async", 1)
    assert capacity.free("b", "async") == 0
    assert set(full(capacity)["async"]) == {"a", "b"}
    assert capacity.published()["kinds"] == {
        "async": {"used": 2, "total": 2},
        "thread": {"used": 0, "total": 1},
        "process": {"used": 0, "total": 1},
    }
    capacity.release("a", "async")
    assert set(full(capacity)["async"]) == {"b"}, "as it is now, not as it was noted"


def test_kind_that_lane_does_not_need_is_not_published_as_full() -> None:
    capacity = Capacity({"async": 2, "thread": 1, "process": 1})
    capacity.serve({"a": {"async"}, "b": {"thread"}})
    capacity.take("a", "thread", 1)
    assert capacity.free("a", "thread") == 0
    assert full(capacity) == {}


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_explain_names_worker_that_is_full_while_it_lasts(dsn: str, kind: str) -> None:
    async with WorkerHarness(dsn, concurrency=1, threads=1) as harness:
        go, go_on = asyncio.Event(), threading.Event()

        async def slow(ctx: Context) -> None:
            await go.wait()

        def slow_thread(ctx: SyncContext) -> None:
            go_on.wait(120)

        harness.lw.handler("slow")(slow if kind == "async" else slow_thread)
        first = await harness.lw.submit("slow")
        worker = await harness.start_worker()
        await harness.running(first)
        second = await harness.lw.submit("slow")

        async def is_told() -> bool:
            explained = await explain.explain(harness.lw.database, second.id)
            return explained.reasons[0].code == "workers_full"

        await wait_until(is_told)
        assert (await workers.get(harness.lw.database, worker.id)).room[kind] == RoomUse(1, 1)
        go.set()
        go_on.set()
        await harness.ended(second)


async def test_explain_names_slots_of_worker_that_is_at_them(dsn: str) -> None:
    async with WorkerHarness(dsn, slots=1) as harness:
        go = asyncio.Event()

        @harness.lw.handler("slow")
        async def slow(ctx: Context) -> None:
            await go.wait()

        @harness.lw.handler("plain")
        def plain(ctx: SyncContext) -> None: ...

        first = await harness.lw.submit("slow")
        worker = await harness.start_worker()
        await harness.running(first)
        second = await harness.lw.submit("plain")

        async def is_named() -> bool:
            found = await explain.explain(harness.lw.database, second.id)
            return f"{worker.name} (slots 1 of 1, since" in found.reasons[0].message

        await wait_until(is_named)
        assert (await workers.get(harness.lw.database, worker.id)).room["slots"] == RoomUse(1, 1)
        go.set()
        await harness.ended(second)


async def test_stopping_worker_is_shown_as_stopping_until_it_stopped(dsn: str) -> None:
    # One at a time: the second job is not claimed before the worker stops.
    async with WorkerHarness(dsn, concurrency=1) as harness:
        go = asyncio.Event()

        @harness.lw.handler("slow")
        async def slow(ctx: Context) -> None:
            await go.wait()

        first = await harness.lw.submit("slow")
        worker = await harness.start_worker()
        await harness.running(first)
        second = await harness.lw.submit("slow")
        stopping = asyncio.create_task(worker.stop(60.0))

        async def is_named() -> bool:
            found = await explain.explain(harness.lw.database, second.id)
            return "workers_stopping" in [reason.code for reason in found.reasons]

        await wait_until(is_named)
        assert (await workers.get(harness.lw.database, worker.id)).is_stopping
        go.set()
        await stopping
        row = await workers.get(harness.lw.database, worker.id)
        assert (row.state, row.is_stopping) == ("stopped", False)


def left_by_counting(
    size: int, lanes: dict[str, set[str]], taken: dict[str, int], lane: str
) -> int:
    """The documented rule: every other lane without a job keeps room for one."""
    others = sum(count for other, count in taken.items() if other != lane)
    others += sum(
        1 for other, kinds in lanes.items()
        if other != lane and "async" in kinds and not taken.get(other)
    )  # fmt: skip
    mine = taken.get(lane, 0)
    return max(size - others - mine, 0 if mine else 1)


@given(st.lists(st.tuples(st.sampled_from("abcx"), st.integers(-1, 3)), max_size=30))
def test_room_left_follows_rule_without_looking_at_every_lane(
    changes: list[tuple[str, int]],
) -> None:
    lanes = {"a": {"async"}, "b": {"async", "thread"}, "c": {"thread"}}
    capacity = Capacity({"async": 8, "thread": 1, "process": 1})
    capacity.serve(lanes)
    taken: dict[str, int] = {}
    for lane, count in changes:
        if count > 0:
            capacity.take(lane, "async", count)
        elif taken.get(lane):
            capacity.release(lane, "async")
            count = -1
        else:
            lanes = {**lanes, "c": {"async"}}
            capacity.serve(lanes)
            count = 0
        taken[lane] = taken.get(lane, 0) + count
        for each in "abcx":
            assert capacity.free(each, "async") == left_by_counting(8, lanes, taken, each)


async def test_start_takes_no_more_statements_with_more_types(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = Database.run

    async def counted(self: Database, statement: Statement[Any]) -> Any:
        asked.append(statement.name)
        return await run(self, statement)

    async with WorkerHarness(dsn) as harness:
        for i in range(60):

            @harness.lw.handler(f"type{i}", lane=f"lane{i % 20}")
            async def job(ctx: Context) -> None: ...

        monkeypatch.setattr(Database, "run", counted)
        worker = await harness.start_worker()
        assert asked.count("lanes/assign_types") == 1
        assert "lanes/create_lane" not in asked
        assert len(worker.capacity.published()) == 2
        assert harness.one("select laneway.lane_of('type59')") == "lane19"
