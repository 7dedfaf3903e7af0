"""One run on a running server: workers, scenarios, live view, report."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from laneway.control import lanes, workers
from laneway.demo import scenarios, workload
from laneway.demo.app import lw
from laneway.demo.events import EventLog, JobStates
from laneway.demo.home import env_file
from laneway.demo.report import DemoReport
from laneway.demo.screen import Screen, live_view
from laneway.demo.workers import DemoWorkers, tail
from laneway.errors import JobFailed

T = TypeVar("T")

FRAME_S = 0.2
REFRESH_S = 0.5
# Enough for a slow and busy machine.
TIMEOUT_S = 90.0

# One worker for interactive and other work, one for the heavy work that may kill it.
LANES_BY_WORKER = (("interactive", "maintenance", "default"), ("system",))


class DemoRun:
    """One run of the demo."""

    def __init__(self, home: Path, console: Console, hurry: asyncio.Event) -> None:
        self._home = home
        self._console = console
        self._hurry = hurry
        self._live = live_view(console)
        self._event_log = EventLog(self._show)
        self._job_states = JobStates(lw.database)
        self._workers = DemoWorkers(home, self._event_log.record)
        self._footer: list[str] = []

    async def run(self, once: bool, began: float) -> int:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(lw.close)
            stack.push_async_callback(self._workers.stop, self._hurry)
            await self._start_workers()
            scenario = scenarios.Scenario(lw, self._workers, self._event_log, self._job_states)
            async with self._live_view():
                report = await self._play(scenario, began)
                if not once:
                    for check in report.failed_checks():
                        self._event_log.record(f"missing: {check}")
                    self._footer = self._next_steps()
                    if self._live is None:
                        self._console.print("\n".join(["", *self._footer, ""]), soft_wrap=True)
                    await workload.trickle(lw, self._event_log, self._job_states)
        return self._finish(report)

    async def _start_workers(self) -> None:
        # 2 s instead of 30 s, so that users can watch what happens when a worker dies.
        await lanes.tune(lw.database, "system", {"lease_seconds": 2}, by="demo")
        self._console.print("Starting workers …")
        for worker in await asyncio.gather(
            *(self._workers.start(*served) for served in LANES_BY_WORKER)
        ):
            pid = worker.process.pid
            served = ", ".join(worker.lanes)
            self._event_log.record(f"worker {worker.letter} (pid {pid}) serves {served}")

    async def _play(self, scenario: scenarios.Scenario, began: float) -> DemoReport:
        kill: scenarios.Kill | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                await workload.submit_burst(lw, self._event_log, self._job_states)
                async with asyncio.TaskGroup() as group:
                    killed = group.create_task(_tolerate(scenarios.kill_and_resume(scenario)))
                    for play in scenarios.OTHERS:
                        group.create_task(_tolerate(play(scenario)))
                kill = killed.result()
                while self._job_states.unfinished:
                    await self._job_states.refresh()
                    await asyncio.sleep(0.1)
        jobs = [await handle.get() for handle in self._job_states.submitted]
        return DemoReport(jobs, kill, time.monotonic() - began)

    @contextlib.asynccontextmanager
    async def _live_view(self) -> AsyncIterator[None]:
        """Draw while the block runs; without a terminal, events are printed instead."""
        if self._live is None:
            yield
            return
        screen = Screen(self._console, self._workers, self._event_log, self._job_states)
        with self._live:
            drawing = asyncio.create_task(self._draw(screen))
            try:
                yield
            finally:
                drawing.cancel()
                await asyncio.gather(drawing, return_exceptions=True)

    async def _draw(self, screen: Screen) -> None:
        assert self._live is not None  # noqa: S101 - only called where there is one
        refreshed = 0.0
        while True:
            if time.monotonic() - refreshed > REFRESH_S:
                refreshed = time.monotonic()
                await self._job_states.refresh()
            overview = await workers.overview(lw.database, active_limit=200)
            self._live.update(screen.frame(overview, self._footer), refresh=True)
            await asyncio.sleep(FRAME_S)

    def _show(self, at: float, text: str) -> None:
        if self._live is None or not self._live.is_started:
            self._console.print(f"{at:5.1f}  {text}", soft_wrap=True)

    def _next_steps(self) -> list[str]:
        return [
            "The demo runs until Ctrl-C. Watch it from another terminal:",
            f"  . {env_file(self._home)}",
            "  laneway top",
            "  laneway jobs ls",
            '  laneway jobs submit ingestion \'{"path": "my.pdf"}\' --wait',
            "Then write your own handlers: README.md, examples/",
        ]

    def _finish(self, report: DemoReport) -> int:
        report.save()
        failed = report.failed_checks()
        self._console.print()
        self._console.print(report.table())
        self._console.print()
        for check in failed:
            self._console.print(f"missing: {check}", soft_wrap=True)
        if failed:
            for log in sorted(self._home.glob("worker-*.log")):
                self._console.print(f"{log.name}:\n{tail(log, 12)}", soft_wrap=True)
        self._console.print(report.line, soft_wrap=True)
        return 1 if failed else 0


async def _tolerate(scenario: Awaitable[T]) -> T | None:
    """Ignore a failed job here: the report lists it, and the other scenarios continue."""
    try:
        return await scenario
    except JobFailed:
        return None
