"""One run on a running PostgreSQL: workers, scenarios, live view, report."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

from laneway.control import lanes, workers
from laneway.demo import scenarios
from laneway.demo.app import lw
from laneway.demo.events import EventLog, JobStates
from laneway.demo.home import env_file
from laneway.demo.report import DemoReport
from laneway.demo.screen import Screen, live_view
from laneway.demo.workers import LIBRARY, DemoWorkers, WorkerSpec, tail
from laneway.errors import JobFailed

if TYPE_CHECKING:
    from laneway.demo.server import DemoServer

T = TypeVar("T")

# Between two frames, and between two reads of the jobs: first for the scenarios, later calmer.
FRAME_S = 0.2
REFRESH_S = 0.5
CALM_FRAME_S = 1.0
CALM_REFRESH_S = 3.0
# Printed without a terminal when every screen of the dashboard has its data.
READY = "ready"
VIEWER = "laneway principals login jonas"
# Enough for a slow and busy machine.
TIMEOUT_S = 90.0

# One worker for interactive and other work, one for the heavy work that may kill it.
MAIN_LANES = ("interactive", "maintenance", "default")
KILLED_LANES = ("system",)


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
        self._footer: Sequence[str] = []
        self._frame_s, self._refresh_s = FRAME_S, REFRESH_S

    async def run_once(self, began: float) -> int:
        """Play the scenarios and report; return the exit code."""
        async with self._cleaned_up():
            await self._start_workers(WorkerSpec(MAIN_LANES), WorkerSpec(KILLED_LANES))
            async with self._live_view():
                report = await self._play(began)
        return self._finish(report)

    async def run_on(self, began: float, seed: int, server: DemoServer | None) -> None:
        """Fill every screen of the dashboard, play the scenarios, and go on until cancelled."""
        # Registers the other handlers.
        from laneway.demo import history, library, people, sample_jobs, trickle

        async with self._cleaned_up() as stack:
            await history.insert(lw.database, seed)
            token = await people.set_up(lw.database)
            grpc = server.grpc if server is not None else None
            lanes_here = (*MAIN_LANES, "analysis", *(() if grpc else (people.REMOTE_LANE,)))
            specs = [WorkerSpec(lanes_here, LIBRARY), WorkerSpec(KILLED_LANES, LIBRARY)]
            if grpc:
                specs.append(WorkerSpec((people.REMOTE_LANE,), LIBRARY, grpc, token))
            await self._start_workers(*specs)
            own = library.lw.worker(only_lanes=[people.OWN_LANE], name="in-process", app=LIBRARY)
            await own.start()
            self._workers.own = own.id
            stack.push_async_callback(own.stop)
            async with self._live_view():
                samples = sample_jobs.submit(lw, self._event_log.record)
                report, _ = await asyncio.gather(self._play(began), samples)
                for check in report.failed_checks():
                    self._event_log.record(f"missing: {check}")
                self._become_calm(server)
                chance = random.Random(seed)
                await trickle.trickle(lw, self._event_log, self._job_states, chance)

    @contextlib.asynccontextmanager
    async def _cleaned_up(self) -> AsyncIterator[contextlib.AsyncExitStack]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(lw.close)
            stack.push_async_callback(self._workers.stop, self._hurry)
            yield stack

    async def _start_workers(self, *specs: WorkerSpec) -> None:
        # 2 s instead of 30 s, so that users can watch what happens when a worker dies.
        await lanes.tune(lw.database, "system", {"lease_seconds": 2}, by="demo")
        self._console.print("Starting workers …")
        for worker in await asyncio.gather(*map(self._workers.start, specs)):
            pid = worker.process.pid
            served = ", ".join(worker.lanes)
            how = "over gRPC" if worker.spec.server else f"pid {pid}"
            self._event_log.record(f"worker {worker.letter} ({how}) serves {served}")

    async def _play(self, began: float) -> DemoReport:
        scenario = scenarios.Scenario(lw, self._workers, self._event_log, self._job_states)
        kill: scenarios.Kill | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                await scenarios.submit_burst(lw, self._event_log, self._job_states)
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

    def _become_calm(self, server: DemoServer | None) -> None:
        """Say that all data is there, and draw less often from now on."""
        self._frame_s, self._refresh_s = CALM_FRAME_S, CALM_REFRESH_S
        if self._live is None:
            steps = self._next_steps(server)
            self._console.print("\n".join(["", *steps, "", READY]), soft_wrap=True)
        else:
            # All of it would not fit below the lanes in 24 lines.
            address = [f"Dashboard: {server.url}/ui/"] if server is not None else []
            terminal = f"In another terminal: . {env_file(self._home)}; laneway top"
            self._footer = [*address, terminal, f"As a viewer: {VIEWER}"]

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
            if time.monotonic() - refreshed > self._refresh_s:
                refreshed = time.monotonic()
                await self._job_states.refresh()
            overview = await workers.overview(lw.database, active_limit=200)
            self._live.update(screen.frame(overview, self._footer), refresh=True)
            await asyncio.sleep(self._frame_s)

    def _show(self, at: float, text: str) -> None:
        if self._live is None or not self._live.is_started:
            self._console.print(f"{at:5.1f}  {text}", soft_wrap=True)

    def _next_steps(self, server: DemoServer | None) -> list[str]:
        dashboard = [f"The dashboard is at {server.url}/ui/"] if server is not None else []
        return [
            *dashboard,
            "The demo runs until Ctrl-C. Watch it from another terminal:",
            f"  . {env_file(self._home)}",
            "  laneway top",
            "  laneway jobs ls --status failed",
            '  laneway jobs submit ingestion \'{"path": "my.pdf"}\' --wait',
            f"  {VIEWER}    # the dashboard as a viewer; maya is an operator",
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
