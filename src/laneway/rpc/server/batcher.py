"""Turns calls that arrive together into one statement."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from laneway.errors import DatabaseUnavailable

BUSY_S: Final = 0.05

I = TypeVar("I")  # noqa: E741
A = TypeVar("A")


class _BatchedCall(Generic[I, A]):
    """The items of one caller, and the answers so far."""

    __slots__ = ("answers", "deadline", "future", "items", "left")

    def __init__(self, items: Sequence[I], deadline: float) -> None:
        self.items = items
        self.deadline = deadline
        # Indexes in `items` without a final answer.
        self.left = list(range(len(items)))
        self.answers: dict[int, A] = {}
        self.future: asyncio.Future[list[A]] = asyncio.get_running_loop().create_future()

    def record(self, answers: Sequence[A], is_busy: Callable[[A], bool]) -> None:
        """Records answers to the items that are left; busy ones stay left."""
        places, self.left = self.left, []
        for place, answer in zip(places, answers, strict=True):
            self.answers[place] = answer
            if is_busy(answer):
                self.left.append(place)

    def finish(self) -> None:
        if not self.future.done():
            self.future.set_result([self.answers[place] for place in range(len(self.items))])

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Batcher(Generic[I, A]):
    """Runs one statement at a time; calls that arrive meanwhile share the next one.

    `work` answers each of its items in order. An error in one caller's items fails that caller
    only. A busy item is tried again until its caller's time is up, and then answered busy. A
    batch weighs no more than `most`, unless it is one call.
    """

    def __init__(
        self,
        work: Callable[[list[I]], Awaitable[list[A]]],
        is_busy: Callable[[A], bool],
        *,
        most: int = 5000,
        weigh: Callable[[I], int] = lambda item: 1,
    ) -> None:
        self._work = work
        self._is_busy = is_busy
        self._most = most
        self._weigh = weigh
        self._waiting: list[_BatchedCall[I, A]] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, items: Sequence[I], within_s: float) -> list[A]:
        """Answers in the order of the items."""
        if not items:
            return []
        call: _BatchedCall[I, A] = _BatchedCall(items, time.monotonic() + within_s)
        self._put(call)
        return await call.future

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call.fail(DatabaseUnavailable("this server stops"))

    def _put(self, call: _BatchedCall[I, A]) -> None:
        if call.future.done():
            return
        self._waiting.append(call)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._loop(), name="laneway batcher"
            )

    async def _loop(self) -> None:
        while self._waiting:
            calls = self._take()
            try:
                await self._serve(calls)
            except asyncio.CancelledError:
                self._waiting[:0] = calls
                raise

    def _take(self) -> list[_BatchedCall[I, A]]:
        """Takes the calls of the next batch; skips callers that have left."""
        calls: list[_BatchedCall[I, A]] = []
        size = 0
        waiting, self._waiting = self._waiting, []
        for i, call in enumerate(waiting):
            if call.future.done():
                continue
            size += sum(self._weigh(call.items[place]) for place in call.left)
            if calls and size > self._most:
                self._waiting = waiting[i:]
                break
            calls.append(call)
        return calls

    async def _serve(self, calls: list[_BatchedCall[I, A]]) -> None:
        if not calls:
            return
        try:
            answers = await self._work([call.items[i] for call in calls for i in call.left])
        except DatabaseUnavailable as error:
            for call in calls:
                call.fail(error)
            return
        except Exception as error:
            await self._serve_one_by_one(calls, error)
            return
        begin = 0
        for call in calls:
            end = begin + len(call.left)
            call.record(answers[begin:end], self._is_busy)
            begin = end
            self._finish_or_retry(call)

    async def _serve_one_by_one(self, calls: list[_BatchedCall[I, A]], error: Exception) -> None:
        if len(calls) > 1:
            for call in calls:
                await self._serve([call])
            return
        (call,) = calls
        if len(call.left) == 1:
            call.fail(error)
            return
        # The other items of the call are still written; repeating them gives the same answers.
        answers: list[A] = []
        for place in call.left:
            try:
                answers += await self._work([call.items[place]])
            except Exception as refused:
                error = refused
        if len(answers) < len(call.left):
            call.fail(error)
            return
        call.record(answers, self._is_busy)
        self._finish_or_retry(call)

    def _finish_or_retry(self, call: _BatchedCall[I, A]) -> None:
        if not call.left or time.monotonic() + BUSY_S >= call.deadline:
            call.finish()
        else:
            asyncio.get_running_loop().call_later(BUSY_S, self._put, call)
