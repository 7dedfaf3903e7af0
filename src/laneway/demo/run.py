"""One run on a server that is up: workers, stories, the view, and the judgement."""

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
from laneway.demo.report import Report
from laneway.demo.screen import Screen, live_view
from laneway.demo.workers import DemoWorkers, tail
from laneway.errors import JobFailed

T = TypeVar("T")

FRAME_S = 0.2
LOOK_S = 0.5
# Long after everything should have ended, on a slow and busy machine.
PATIENCE_S = 90.0

# One worker for the people who wait and the rest, one for heavy work that may take it down.
CREW = (("interactive", "maintenance", "default"), ("system",))


class DemoRun:
    """Holds what the parts of a run share."""

    def __init__(self, home: Path, console: Console, hurry: asyncio.Event) -> None:
        self._home = home
        self._console = console
        self._hurry = hurry
        self._live = live_view(console)
        self._chronicle = EventLog(self._pass_on)
        self._tally = JobStates(lw.database)
        self._crew = DemoWorkers(home, self._chronicle.tell)
        self._footer: list[str] = []

    async def run(self, once: bool, began: float) -> int:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(lw.close)
            stack.push_async_callback(self._crew.stop, self._hurry)
            await self._start_crew()
            scene = scenarios.Scenario(lw, self._crew, self._chronicle, self._tally)
            async with self._watched():
                findings = await self._act(scene, began)
                if not once:
                    for law in findings.broken_laws():
                        self._chronicle.tell(f"missing: {law}")
                    self._footer = self._next_steps()
                    if self._live is None:
                        self._console.print("\n".join(["", *self._footer, ""]), soft_wrap=True)
                    await workload.trickle(lw, self._chronicle, self._tally)
        return self._judge(findings)

    async def _start_crew(self) -> None:
        # The database decides how long a lease lasts: 2 s instead of 30 s, so that one can watch
        # what happens when a worker dies.
        await lanes.tune(lw.database, "system", {"lease_seconds": 2}, by="demo")
        self._console.print("Starting workers …")
        for member in await asyncio.gather(*(self._crew.start(*served) for served in CREW)):
            pid = member.process.pid
            served = ", ".join(member.lanes)
            self._chronicle.tell(f"worker {member.letter} (pid {pid}) serves {served}")

    async def _act(self, scene: scenarios.Scenario, began: float) -> Report:
        kill: scenarios.Kill | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await workload.submit_burst(lw, self._chronicle, self._tally)
                async with asyncio.TaskGroup() as group:
                    killed = group.create_task(_tolerate(scenarios.kill_and_resume(scene)))
                    for story in scenarios.OTHERS:
                        group.create_task(_tolerate(story(scene)))
                kill = killed.result()
                while self._tally.unfinished:
                    await self._tally.refresh()
                    await asyncio.sleep(0.1)
        jobs = [await handle.get() for handle in self._tally.submitted]
        return Report(jobs, kill, time.monotonic() - began)

    @contextlib.asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Draws while the block runs; without a terminal the events are enough."""
        if self._live is None:
            yield
            return
        screen = Screen(self._console, self._crew, self._chronicle, self._tally)
        with self._live:
            drawing = asyncio.create_task(self._draw(screen))
            try:
                yield
            finally:
                drawing.cancel()
                await asyncio.gather(drawing, return_exceptions=True)

    async def _draw(self, screen: Screen) -> None:
        assert self._live is not None  # noqa: S101 - only called where there is one
        looked = 0.0
        while True:
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                await self._tally.refresh()
            seen = await workers.overview(lw.database, active_limit=200)
            self._live.update(screen.frame(seen, self._footer), refresh=True)
            await asyncio.sleep(FRAME_S)

    def _pass_on(self, at: float, text: str) -> None:
        if self._live is None or not self._live.is_started:
            self._console.print(f"{at:5.1f}  {text}", soft_wrap=True)

    def _next_steps(self) -> list[str]:
        return [
            "This goes on until Ctrl-C. Look at it from another terminal:",
            f"  . {env_file(self._home)}",
            "  laneway top",
            "  laneway jobs ls",
            '  laneway jobs submit ingestion \'{"path": "my.pdf"}\' --wait',
            "Then write handlers of your own: README.md, examples/",
        ]

    def _judge(self, findings: Report) -> int:
        findings.save()
        broken = findings.broken_laws()
        self._console.print()
        self._console.print(findings.table())
        self._console.print()
        for law in broken:
            self._console.print(f"missing: {law}", soft_wrap=True)
        if broken:
            for log in sorted(self._home.glob("worker-*.log")):
                self._console.print(f"{log.name}:\n{tail(log, 12)}", soft_wrap=True)
        self._console.print(findings.line, soft_wrap=True)
        return 1 if broken else 0


async def _tolerate(story: Awaitable[T]) -> T | None:
    """A job that failed is judged with the others, at the end; it must not end their stories."""
    try:
        return await story
    except JobFailed:
        return None
