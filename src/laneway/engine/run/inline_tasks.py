"""Handlers on the event loop that take turns in one task as long as none of them waits.

A task and its trip through the loop cost more than a short handler itself. So those that were
claimed together start in one task, each in a context of its own; the first that waits keeps the
task for itself, and the others go on in another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, cast

from laneway import forks
from laneway.engine.run.attempt import Run

Work = Callable[[Run], Coroutine[Any, Any, None]]


class InlineTasks:
    """Starts runs, and ends those that broke off before they could say how."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Work,
        on_broken: Callable[[Run, BaseException], None],
    ) -> None:
        self._loop = loop
        self._work = work
        self._on_broken = on_broken
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, runs: deque[Run]) -> None:
        """Begins with the first of them at the loop's next turn."""
        shared = _Shared(runs)
        task = self._loop.create_task(self._all(shared))
        self.tasks.add(task)
        task.add_done_callback(lambda done: self._ended(shared, done))

    async def _all(self, shared: _Shared) -> None:
        while shared.runs:
            run = shared.current = shared.runs.popleft()
            turn = _InlineRun(self._work(run), run, self._let_go, shared)
            try:
                await turn
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                # Our mistake, as handlers' errors end in verdicts: not for those behind it. Nor for
                # the loop, which SystemExit of a task would end.
                if turn.is_closed:
                    raise
                self._on_broken(run, error)
            shared.current = None
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # A handler cancelled its own task: that is not for those behind it.
                self._let_go(shared)

    def _let_go(self, shared: _Shared) -> None:
        """The task belongs to its present run alone from now on."""
        if shared.runs:
            rest = deque(shared.runs)
            shared.runs.clear()
            self.start(rest)

    def _ended(self, shared: _Shared, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            for run in (*([shared.current] if shared.current else ()), *shared.runs):
                self._on_broken(run, error)


class _Shared:
    """The run that has the task now, and those behind it."""

    __slots__ = ("current", "runs")

    def __init__(self, runs: deque[Run]) -> None:
        self.runs = runs
        self.current: Run | None = None


class _InlineRun:
    """Awaits one run's coroutine, each step in a context of its own."""

    __slots__ = ("_let_go", "_run", "_shared", "_work", "is_closed")

    def __init__(
        self,
        work: Coroutine[Any, Any, None],
        run: Run,
        let_go: Callable[[_Shared], None],
        shared: _Shared,
    ) -> None:
        self._work = work
        self._run = run
        self._let_go = let_go
        self._shared = shared
        # Its task is thrown away: what GeneratorExit says then, and never else.
        self.is_closed = False

    def __await__(self) -> Generator[Any, Any, None]:
        context, work = copy_context(), self._work
        try:
            waited = context.run(work.send, None)
        except StopIteration:
            return
        if forks.is_fork:
            # Before anything else of the worker's loop runs here.
            forks.end()
        self._let_go(self._shared)
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._run.stopper = task.cancel
        yield from self._steps(context, work, waited)

    def _steps(
        self, context: Context, work: Coroutine[Any, Any, None], waited: Any
    ) -> Generator[Any, Any, None]:
        while True:
            error: BaseException | None = None
            value: Any = None
            try:
                value = yield waited
            except GeneratorExit:
                self.is_closed = self._run.is_closed = True
                work.close()
                raise
            except BaseException as raised:
                error = raised
            send = work.send if error is None else work.throw
            try:
                waited = context.run(send, value if error is None else error)
            except StopIteration:
                return
            if forks.is_fork:
                forks.end()
