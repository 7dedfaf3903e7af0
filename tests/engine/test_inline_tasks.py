"""Handlers that share a task until one of them waits do not notice each other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, cast

from laneway.engine.run.attempt import Run
from laneway.engine.run.inline_tasks import InlineTasks
from tests.support.worker_harness import wait_until

MARK: ContextVar[int] = ContextVar("MARK", default=0)


class RecordedRuns:
    """Runs that are only numbers, and their results."""

    def __init__(self, work: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        self.broken: dict[int, BaseException] = {}
        self.ended: list[int] = []
        self.runs: list[Any] = []
        self._work = work
        self.turns = InlineTasks(asyncio.get_running_loop(), self._one, self._broke)

    async def _one(self, run: Run) -> None:
        number = cast(Any, run).number
        await self._work(number)
        self.ended.append(number)

    def _broke(self, run: Run, error: BaseException) -> None:
        self.broken[cast(Any, run).number] = error

    def start(self, count: int) -> None:
        self.runs = [
            SimpleNamespace(number=n, stopper=None, is_stopped=False) for n in range(count)
        ]
        self.turns.start(deque(self.runs))

    async def done(self) -> None:
        while self.turns.tasks:
            await asyncio.wait(self.turns.tasks)
            await asyncio.sleep(0)


async def test_those_that_never_wait_share_one_task() -> None:
    tasks: set[object] = set()

    async def work(n: int) -> None:
        tasks.add(asyncio.current_task())

    runs = RecordedRuns(work)
    runs.start(100)
    await runs.done()
    assert runs.ended == list(range(100))
    assert len(tasks) == 1


async def test_handler_that_waits_keeps_its_task_and_delays_no_other() -> None:
    gate, tasks = asyncio.Event(), {}

    async def work(n: int) -> None:
        tasks[n] = asyncio.current_task()
        if n % 2:
            await gate.wait()
            assert asyncio.current_task() is tasks[n]

    runs = RecordedRuns(work)
    runs.start(10)
    await wait_until(lambda: len(runs.ended) == 5)
    assert runs.ended == [0, 2, 4, 6, 8]
    assert len({tasks[n] for n in (1, 3, 5, 7, 9)}) == 5
    gate.set()
    await runs.done()
    assert sorted(runs.ended) == list(range(10))
    assert runs.broken == {}


async def test_each_handler_has_separate_context_variables() -> None:
    seen: list[tuple[int, int, int]] = []

    async def work(n: int) -> None:
        before = MARK.get()
        MARK.set(n + 1)
        if n % 3 == 0:
            await asyncio.sleep(0)
        seen.append((n, before, MARK.get()))

    runs = RecordedRuns(work)
    runs.start(12)
    await runs.done()
    assert sorted(seen) == [(n, 0, n + 1) for n in range(12)]
    assert MARK.get() == 0


async def test_cancelling_one_stops_it_alone() -> None:
    stopped: list[int] = []

    async def work(n: int) -> None:
        try:
            await asyncio.sleep(1 if n != 3 else 3600)
        except asyncio.CancelledError:
            stopped.append(n)

    runs = RecordedRuns(work)
    runs.start(6)
    await wait_until(lambda: runs.runs[5].stopper is not None)
    runs.runs[3].stopper()
    await runs.done()
    assert stopped == [3]
    assert sorted(runs.ended) == list(range(6))


async def test_one_that_cancels_its_own_task_harms_no_other() -> None:
    async def work(n: int) -> None:
        if n == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return
        await asyncio.sleep(0)

    runs = RecordedRuns(work)
    runs.start(5)
    await runs.done()
    assert sorted(runs.ended) == [0, 1, 2, 3, 4]


async def test_timeouts_and_groups_of_tasks_work_inside() -> None:
    late: list[int] = []

    async def work(n: int) -> None:
        try:
            async with asyncio.timeout(0.01 if n % 2 else 3600), asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(3600 if n % 2 else 0))
        except TimeoutError:
            late.append(n)

    runs = RecordedRuns(work)
    runs.start(6)
    await runs.done()
    assert sorted(late) == [1, 3, 5]
    assert sorted(runs.ended) == list(range(6))


async def test_handler_interrupted_before_its_start_is_reported() -> None:
    async def work(n: int) -> None:
        raise AssertionError("never called")

    runs = RecordedRuns(work)
    runs.start(3)
    for task in runs.turns.tasks:
        task.cancel()
    await runs.done()
    assert sorted(runs.broken) == [0, 1, 2]


async def test_error_of_ours_ends_the_one_alone() -> None:
    async def work(n: int) -> None:
        if n == 1:
            raise RuntimeError("ours")

    runs = RecordedRuns(work)
    runs.start(4)
    await runs.done()
    assert runs.ended == [0, 2, 3]
    assert sorted(runs.broken) == [1]
