"""Attempts that run in child processes, because of their isolation or as suspects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

from laneway.engine.run import attempt_outcomes
from laneway.engine.run.attempt import Run
from laneway.engine.run.local_channel import LoopChannel
from laneway.engine.run.tools import RunTools
from laneway.errors import StaleAttempt
from laneway.store.leases import Verdict


class RunOwner(Protocol):
    """The methods of the executor that runs in children need."""

    def enter(self, run: Run) -> None: ...
    async def judge(self, run: Run, judge: Callable[[], Verdict | None]) -> Verdict | None: ...
    async def flush_reports(self, run: Run) -> None: ...
    def end(self, run: Run, verdict: Verdict | None) -> None: ...


class ChildRuns:
    """Runs handlers in the children of a pool and ends their attempts."""

    def __init__(self, owner: RunOwner, tools: RunTools) -> None:
        self._owner = owner
        self._pool = tools.pool
        self._requests = tools.requests
        self._limits = tools.settings.payload_limits
        self._resources = tools.resources
        # Suspects do not take room in the pool: run only a few at a time.
        self._suspect_slots = asyncio.Semaphore(max(1, tools.settings.children))

    async def run(self, run: Run) -> None:
        """Run an attempt to its end."""
        self._owner.enter(run)
        channel = LoopChannel(run, self._requests, None, None, self._resources, self._limits)
        verdict = await self._pool.run(run, channel)
        if run.place == "child" and run.started is None and not run.is_stopped:
            # A child may be unable to find its handler.
            run.place = "returned"
            return
        finished = verdict is not None and verdict.kind == "finish"
        if run.stop_reason in ("timeout", "fenced") or (run.stop_reason and not finished):
            verdict = await self._owner.judge(run, partial(attempt_outcomes.of_stop, run))
        elif verdict is None:
            # The child saw StaleAttempt. If the attempt still runs, that counts as a failure.
            error = StaleAttempt("the handler was refused a write")
            verdict = await self._owner.judge(run, partial(attempt_outcomes.of_error, run, error))
        if run.has_reports and verdict is not None and not run.ended:
            await self._owner.flush_reports(run)
        self._owner.end(run, verdict)

    async def run_suspect(self, run: Run) -> None:
        """Run a suspect, whatever its isolation; its place is `returned` if no child can."""
        run.stopper = cast("asyncio.Task[None]", asyncio.current_task()).cancel
        try:
            if not run.is_stopped:
                async with self._suspect_slots:
                    if not run.is_stopped:
                        return await self.run(run)
        except asyncio.CancelledError:
            if not run.is_stopped:
                raise
        # The handler was not called.
        self._owner.end(run, attempt_outcomes.of_stop(run))
