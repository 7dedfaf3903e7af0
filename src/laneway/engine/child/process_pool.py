"""A pool of child processes that run handlers, so that a crash does not harm the worker."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from dataclasses import asdict
from functools import partial

from laneway.config.settings import Settings
from laneway.engine.child.process import CHILD_MODULE, ChildProcess
from laneway.engine.child.run import ChildRun
from laneway.engine.process.logs import log_format
from laneway.engine.run import attempt_outcomes
from laneway.engine.run.attempt import Run
from laneway.engine.run.local_channel import LoopChannel
from laneway.engine.run.retry_decision import off_loop
from laneway.errors import ConfigError
from laneway.store.leases import Verdict

IDLE_S = 60.0
KEPT_IDLE = 2
# Time for the on_stop hooks of a retired child.
RETIRE_S = 5.0
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0


class _Backoff:
    """Delays new children after a child failed to load a module."""

    def __init__(self) -> None:
        self._failures: dict[str | None, tuple[int, float]] = {}

    def wait_s(self, module: str | None) -> float:
        return self._failures.get(module, (0, 0.0))[1] - time.monotonic()

    def failed(self, module: str | None) -> None:
        count = self._failures.get(module, (0, 0.0))[0] + 1
        delay = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(count - 1, 10))
        self._failures[module] = count, time.monotonic() + delay

    def worked(self, module: str | None) -> None:
        self._failures.pop(module, None)


class ProcessPool:
    """Warm children, each running one job at a time; started when needed, kept for the next."""

    def __init__(
        self, size: int, settings: Settings, *, app: str | None = None, has_database: bool = True
    ) -> None:
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        if spec is not None and spec.name == CHILD_MODULE:
            raise ConfigError(
                "a child process was about to start a worker while importing the main script:"
                ' put the start under `if __name__ == "__main__":`'
            )
        self._size = size
        self._most_jobs = settings.max_jobs_per_child
        self._handshake = {
            "app": app,
            "has_database": has_database,
            "limits": asdict(settings.payload_limits),
            "logs": (log_format(), settings.log_level),
        }
        self._children: set[ChildProcess] = set()
        self._idle: list[ChildProcess] = []
        self._child_runs: dict[Run, ChildRun] = {}
        self._backoff = _Backoff()
        self._starting = asyncio.Lock()
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the living children, busy or idle."""
        return sorted(child.pid for child in self._children if child.is_alive)

    async def run(self, run: Run, channel: LoopChannel) -> Verdict | None:
        """Run a job in a child; return the verdict, or None if the child gave none.

        Raises only when cancelled.
        """
        child_run = self._child_runs[run] = ChildRun(run, channel)
        run.stopper = child_run.stop
        try:
            return await self._run(child_run)
        except Exception as error:
            self._backoff.failed(child_run.module)
            return await off_loop(run, partial(attempt_outcomes.of_error, run, error))
        finally:
            run.stopper = None
            del self._child_runs[run]
            await child_run.close()

    def kill(self, run: Run) -> None:
        """Kill the child of a run that did not stop when asked."""
        child_run = self._child_runs.get(run)
        if child_run is not None:
            child_run.kill()

    async def close(self) -> None:
        """Retire idle children, kill busy ones, and wait for all."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for child_run in self._child_runs.values():
            child_run.stopped.set()
        async with self._starting:
            idle, self._idle = self._idle, []
        for child_run in self._child_runs.values():
            child_run.kill()
        for child in idle:
            self._retire(child)
        if self._children:
            await asyncio.wait({child.gone for child in self._children})

    async def _run(self, child_run: ChildRun) -> Verdict | None:
        while child_run.is_wanted() and not self._is_closed:
            if (wait_s := self._backoff.wait_s(child_run.module)) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await child_run.stopped.wait()
                continue
            child = await self._take(child_run.run.handler.memory_mb)
            if child is None:
                break
            was_used = child.jobs > 0
            message = await child_run.run_in(child)
            if child_run.is_started:
                self._backoff.worked(child_run.module)
            if message is not None:
                child_run.child = None
                if not child_run.is_started and message["verdict"] is not None:
                    self._backoff.failed(child_run.module)
                self._put_back(child, can_go_on=message["again"] and not child_run.is_killed)
                return child_run.verdict(message)
            exit_text = await child.ended()
            child_run.child = None
            if child_run.is_killed:
                break
            if child_run.is_started:
                return child_run.death_verdict(exit_text)
            if not was_used:
                self._backoff.failed(child_run.module)
                return child_run.death_verdict(exit_text)
            # The child died of an earlier job, before this handler was called: take another.
        return None

    async def _take(self, memory_mb: int | None) -> ChildProcess | None:
        """The idle child used last, or a new one; None if the pool is closed."""
        for child in reversed(self._idle):
            if child.memory_mb == memory_mb and child.is_alive:
                self._idle.remove(child)
                return child
        # One at a time: starting an interpreter keeps a core busy for a third of a second.
        async with self._starting:
            if self._is_closed:
                return None
            if self._idle and len(self._children) >= self._size:
                self._retire(self._idle.pop(0))
            child = await ChildProcess.start(self._handshake, memory_mb)
            self._children.add(child)
        child.gone.add_done_callback(lambda _: self._remove(child))
        return child

    def _put_back(self, child: ChildProcess, *, can_go_on: bool) -> None:
        child.is_read.set()
        if self._is_closed:
            child.kill()
        elif not can_go_on or child.jobs >= self._most_jobs:
            self._retire(child)
        elif child.is_alive:
            child.idle_since = time.monotonic()
            self._idle.append(child)
            self._sweep_in(IDLE_S)

    def _sweep_in(self, delay_s: float) -> None:
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(delay_s, self._retire_surplus)

    def _retire_surplus(self) -> None:
        """Retire children that have been idle for long, except for a few."""
        self._sweep = None
        now = time.monotonic()
        while len(self._idle) > KEPT_IDLE and self._idle[0].idle_since <= now - IDLE_S:
            self._retire(self._idle.pop(0))
        if len(self._idle) > KEPT_IDLE:
            self._sweep_in(self._idle[0].idle_since + IDLE_S - now)

    def _retire(self, child: ChildProcess) -> None:
        child.send({"kind": "retire"})
        asyncio.get_running_loop().call_later(RETIRE_S, child.kill)

    def _remove(self, child: ChildProcess) -> None:
        self._children.discard(child)
        if child in self._idle:
            self._idle.remove(child)
