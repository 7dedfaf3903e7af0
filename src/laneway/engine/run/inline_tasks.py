"""Runs handlers on the event loop, in one shared task as long as none of them waits.

A task and its pass through the loop cost more than a short handler. So handlers claimed together
start in one task, each in a separate context. The first one that waits keeps the task, and the
others continue in another task.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, Final, Protocol, cast

from laneway import forks
from laneway.engine.run.attempt import Run

Work = Callable[[Run], Coroutine[Any, Any, None]]
# Handlers that never wait let the event loop go on after this long.
SLICE_S: Final = 0.01


class Pace(Protocol):
    """Learns how long handlers take that end without waiting."""

    def ended_at_once(self, lane: str, count: int, took_s: float) -> None: ...

    def waited(self, lane: str) -> None: ...


class InlineTasks:
    """Starts runs; calls `on_broken` for those that end without a verdict."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Work,
        on_broken: Callable[[Run, BaseException], None],
    ) -> None:
        self._loop = loop
        self._work = work
        self._on_broken = on_broken
        self.pace: Pace | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, runs: deque[Run]) -> None:
        """Start the runs in the loop's next iteration."""
        shared = _SharedTask(runs)
        task = self._loop.create_task(self._all(shared))
        self.tasks.add(task)
        task.add_done_callback(lambda done: self._ended(shared, done))

    async def _all(self, shared: _SharedTask) -> None:
        began, count = time.monotonic(), 0
        task = asyncio.current_task()
        while shared.runs:
            run = shared.current = shared.runs.popleft()
            inline = _InlineRun(self._work(run), run, self._detach, shared)
            try:
                await inline
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                # A bug of Laneway, as errors of handlers become verdicts. It must not stop the
                # other runs, or the loop, which a SystemExit of a task would end.
                if inline.is_closed:
                    raise
                self._on_broken(run, error)
            shared.current = None
            if task is not None and task.cancelling():
                # A handler cancelled its own task, which must not cancel the other runs.
                self._detach(shared)
            count += 1
            if shared.runs and time.monotonic() - began > SLICE_S:
                self._continue_later(shared)
        if self.pace is not None and not shared.has_waited:
            self.pace.ended_at_once(run.lane, count, time.monotonic() - began)

    def _detach(self, shared: _SharedTask) -> None:
        """Move the remaining runs to another task; the current run keeps this one."""
        shared.has_waited = True
        if self.pace is not None and shared.current is not None:
            self.pace.waited(shared.current.lane)
        self._continue_later(shared)

    def _continue_later(self, shared: _SharedTask) -> None:
        if shared.runs:
            rest = deque(shared.runs)
            shared.runs.clear()
            self.start(rest)

    def _ended(self, shared: _SharedTask, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            for run in (*([shared.current] if shared.current else ()), *shared.runs):
                self._on_broken(run, error)


class _SharedTask:
    """The current run of a task, and the runs after it."""

    __slots__ = ("current", "has_waited", "runs")

    def __init__(self, runs: deque[Run]) -> None:
        self.runs = runs
        self.current: Run | None = None
        self.has_waited = False


class _InlineRun:
    """Awaits one run's coroutine, each step in the run's own context."""

    __slots__ = ("_detach", "_run", "_shared", "_work", "is_closed")

    def __init__(
        self,
        work: Coroutine[Any, Any, None],
        run: Run,
        detach: Callable[[_SharedTask], None],
        shared: _SharedTask,
    ) -> None:
        self._work = work
        self._run = run
        self._detach = detach
        self._shared = shared
        # The event loop closed the task: only then is GeneratorExit not the handler's own.
        self.is_closed = False

    def __await__(self) -> Generator[Any, Any, None]:
        context, work = copy_context(), self._work
        try:
            waited = context.run(work.send, None)
        except StopIteration:
            return
        if forks.is_fork:
            # Exit before the forked copy of the worker's loop runs anything else.
            forks.end()
        self._detach(self._shared)
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
