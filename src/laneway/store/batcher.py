"""Turns calls that arrive together into one statement."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import Context
from types import coroutine
from typing import Any, Final, Generic, TypeVar

from laneway.errors import DatabaseUnavailable
from laneway.store.aborted_statements import StatementAborted

BUSY_S: Final = 0.05
# Calls of an aborted batch that may be aborted again, one by one, before the others fail too: each
# may take as long as the timeout of a statement.
MOST_ABORTED: Final = 2
_STOPS: Final = "this server stops"

I = TypeVar("I")  # noqa: E741
A = TypeVar("A")


class _BatchedCall(Generic[I, A]):
    """The items of one caller, and the answers so far."""

    __slots__ = ("answers", "deadline", "future", "items", "left", "weight")

    def __init__(self, items: Sequence[I], deadline: float) -> None:
        self.items = items
        self.deadline = deadline
        self.weight = 0
        # Indexes in `items` without a final answer.
        self.left: Sequence[int] = range(len(items))
        self.answers: list[A] = []
        self.future: asyncio.Future[list[A]] = asyncio.get_running_loop().create_future()

    def record(self, answers: list[A], is_busy: Callable[[A], bool]) -> None:
        """Records answers to the items that are left; busy ones stay left."""
        if self.answers:
            for place, answer in zip(self.left, answers, strict=True):
                self.answers[place] = answer
        else:
            self.answers = answers
        self.left = [place for place in self.left if is_busy(self.answers[place])]

    def finish(self) -> None:
        if not self.future.done():
            self.future.set_result(self.answers)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Batcher(Generic[I, A]):
    """Runs `at_once` statements at a time; calls that arrive meanwhile share the next one.

    `work` answers each of its items in order. An error in one caller's items fails that caller
    only; with `splits_aborted` also a statement that PostgreSQL aborts. A busy item is tried again
    until its caller's time is up, and then answered busy. A batch weighs no more than `most`,
    unless it is one call.
    """

    def __init__(
        self,
        work: Callable[[list[I]], Awaitable[list[A]]],
        is_busy: Callable[[A], bool] = lambda answer: False,
        *,
        most: int = 5000,
        weigh: Callable[[I], int] = lambda item: 1,
        at_once: int = 1,
        splits_aborted: bool = False,
    ) -> None:
        self._work = work
        self._splits_aborted = splits_aborted
        self._is_busy = is_busy
        self._most = most
        self._weigh = weigh
        self._at_once = at_once
        self._waiting: deque[_BatchedCall[I, A]] = deque()
        self._weight = 0
        self._is_due = False
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, items: Sequence[I], within_s: float = math.inf) -> list[A]:
        """Answers in the order of the items."""
        if not items:
            return []
        call: _BatchedCall[I, A] = _BatchedCall(items, time.monotonic() + within_s)
        self._put(call)
        return await call.future

    async def drain(self) -> None:
        """Waits until every call is answered."""
        # Calls of this iteration of the event loop have not started.
        self._start()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Fails the calls that are not answered, and every later one."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.fail(DatabaseUnavailable(_STOPS))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _put(self, call: _BatchedCall[I, A]) -> None:
        """Starts a full batch at once, others at the end of this iteration of the event loop."""
        if self._is_closed:
            call.fail(DatabaseUnavailable(_STOPS))
        if call.future.done():
            return
        call.weight = sum([self._weigh(call.items[place]) for place in call.left])
        self._weight += call.weight
        self._waiting.append(call)
        if self._weight >= self._most:
            self._start()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_due = False
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._tasks) < self._at_once:
            calls = self._take()
            task = _start_eagerly(self._answer(calls)) if calls else None
            if task is not None:
                self._tasks.add(task)
                task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    def _take(self) -> list[_BatchedCall[I, A]]:
        """Takes the calls of the next batch; skips callers that have left."""
        calls: list[_BatchedCall[I, A]] = []
        size = 0
        while self._waiting:
            call = self._waiting[0]
            if not call.future.done():
                size += call.weight
                if calls and size > self._most:
                    break
                calls.append(call)
            self._weight -= call.weight
            self._waiting.popleft()
        return calls

    async def _answer(self, calls: list[_BatchedCall[I, A]]) -> None:
        try:
            await self._serve(calls)
        except BaseException:
            # Cancelled.
            for call in calls:
                call.fail(DatabaseUnavailable(_STOPS))
            raise

    async def _serve(self, calls: list[_BatchedCall[I, A]]) -> None:
        try:
            answers = await self._work([call.items[i] for call in calls for i in call.left])
        except Exception as error:
            if not self._is_of_one_call(error):
                for call in calls:
                    call.fail(error)
            elif len(calls) == 1:
                await self._serve_items(calls[0], error)
            else:
                await self._serve_one_by_one(calls)
            return
        begin = 0
        for call in calls:
            end = begin + len(call.left)
            call.record(answers[begin:end], self._is_busy)
            begin = end
            self._finish_or_retry(call)

    def _is_of_one_call(self, error: Exception) -> bool:
        """Whether one of several calls may be the cause."""
        if isinstance(error, StatementAborted):
            return self._splits_aborted
        return not isinstance(error, DatabaseUnavailable)

    async def _serve_one_by_one(self, calls: list[_BatchedCall[I, A]]) -> None:
        aborted = 0
        for call in calls:
            if aborted == MOST_ABORTED:
                call.fail(StatementAborted("several statements before it were aborted: try again"))
                continue
            await self._serve([call])
            if call.future.done() and not call.future.cancelled():
                aborted += isinstance(call.future.exception(), StatementAborted)

    async def _serve_items(self, call: _BatchedCall[I, A], error: Exception) -> None:
        """Serve one call whose items failed together."""
        if len(call.left) == 1 or isinstance(error, StatementAborted):
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


def _start_eagerly(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run a coroutine to its first wait and return its task; None: it has finished.

    A normal task would start after all requests that were read in this iteration, and leave the
    database idle until then. Its empty context keeps request ids out of its log lines.
    """
    context = Context()
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, context=context, eager_start=True)
    try:
        first = context.run(work.send, None)
    except StopIteration:
        return None
    return loop.create_task(_rest(work, first), context=context)


@coroutine
def _rest(work: Coroutine[Any, Any, None], waited_for: Any) -> Generator[Any, Any, None]:
    try:
        while True:
            try:
                result = yield waited_for
            except BaseException as error:
                waited_for = work.throw(error)
            else:
                waited_for = work.send(result)
    except StopIteration:
        return
