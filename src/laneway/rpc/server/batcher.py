"""Calls that arrive together become one statement."""

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
    """What one caller asks, and what is known of the answer."""

    __slots__ = ("answers", "items", "left", "until", "waits")

    def __init__(self, items: Sequence[I], until: float) -> None:
        self.items = items
        self.until = until
        # Places in `items` that are still to be asked for.
        self.left = list(range(len(items)))
        self.answers: dict[int, A] = {}
        self.waits: asyncio.Future[list[A]] = asyncio.get_running_loop().create_future()

    def take(self, answers: Sequence[A], is_busy: Callable[[A], bool]) -> None:
        """Notes the answers to all that is left; what was busy stays left."""
        places, self.left = self.left, []
        for place, answer in zip(places, answers, strict=True):
            self.answers[place] = answer
            if is_busy(answer):
                self.left.append(place)

    def finish(self) -> None:
        if not self.waits.done():
            self.waits.set_result([self.answers[place] for place in range(len(self.items))])

    def fail(self, error: Exception) -> None:
        if not self.waits.done():
            self.waits.set_exception(error)


class Batcher(Generic[I, A]):
    """One statement is on its way at a time; what comes meanwhile goes with the next.

    `work` answers each of its items in order. What it refuses of one caller fails that caller only.
    An item that is busy is asked for again until its caller's time is up, and answered so then.
    What goes together weighs no more than `most`, unless it is one call.
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

    async def ask(self, items: Sequence[I], within_s: float) -> list[A]:
        """The answers, in the order of the items."""
        if not items:
            return []
        call: _BatchedCall[I, A] = _BatchedCall(items, time.monotonic() + within_s)
        self._put(call)
        return await call.waits

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call.fail(DatabaseUnavailable("this server stops"))

    def _put(self, call: _BatchedCall[I, A]) -> None:
        if call.waits.done():
            return
        self._waiting.append(call)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="laneway gather")

    async def _run(self) -> None:
        while self._waiting:
            calls = self._take()
            try:
                await self._serve(calls)
            except asyncio.CancelledError:
                self._waiting[:0] = calls
                raise

    def _take(self) -> list[_BatchedCall[I, A]]:
        """As many calls as go together; who has left is not asked for."""
        calls: list[_BatchedCall[I, A]] = []
        size = 0
        waiting, self._waiting = self._waiting, []
        for i, call in enumerate(waiting):
            if call.waits.done():
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
            await self._serve_apart(calls, error)
            return
        begin = 0
        for call in calls:
            end = begin + len(call.left)
            call.take(answers[begin:end], self._is_busy)
            begin = end
            self._follow(call)

    async def _serve_apart(self, calls: list[_BatchedCall[I, A]], error: Exception) -> None:
        if len(calls) > 1:
            for call in calls:
                await self._serve([call])
            return
        (call,) = calls
        if len(call.left) == 1:
            call.fail(error)
            return
        # The others of the call are not to suffer; whoever says it again is answered alike.
        answers: list[A] = []
        for place in call.left:
            try:
                answers += await self._work([call.items[place]])
            except Exception as refused:
                error = refused
        if len(answers) < len(call.left):
            call.fail(error)
            return
        call.take(answers, self._is_busy)
        self._follow(call)

    def _follow(self, call: _BatchedCall[I, A]) -> None:
        if not call.left or time.monotonic() + BUSY_S >= call.until:
            call.finish()
        else:
            asyncio.get_running_loop().call_later(BUSY_S, self._put, call)
