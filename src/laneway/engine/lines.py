"""The lines between a context and the worker when the handler runs in the worker's own process."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from laneway.domain.payload import PayloadLimits
from laneway.engine.reporter import Reporter
from laneway.engine.run import Run
from laneway.store.leases import Report


class LoopLine:
    """For handlers on the event loop."""

    __slots__ = (
        "_reporter",
        "_run",
        "attempt",
        "checkpoint",
        "job_id",
        "limits",
        "payload",
        "resources",
    )

    def __init__(
        self,
        run: Run,
        reporter: Reporter,
        payload: Any,
        checkpoint: Any,
        resources: SimpleNamespace,
        limits: PayloadLimits,
    ) -> None:
        self._run = run
        self._reporter = reporter
        self.job_id: UUID = run.claim.job_id
        self.attempt: int = run.claim.attempt
        self.payload = payload
        self.checkpoint = checkpoint
        self.resources = resources
        self.limits = limits

    @property
    def stop_reason(self) -> str | None:
        return self._run.stop_reason

    def report(
        self,
        *,
        stage: str | None = None,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        self._run.reports = True
        claim = self._run.claim
        self._reporter.report(claim, Report(claim, stage, done, total, message, checkpoint))

    def log(self, level: str, message: str) -> None:
        self._run.reports = True
        self._run.line += 1
        self._reporter.line(self._run.claim, self._run.line, level, message)

    async def flush(self) -> None:
        await self._reporter.flush(self._run.claim)

    def flush_blocking(self) -> None:
        raise AssertionError("the event loop cannot wait for itself")


class ThreadLine(LoopLine):
    """For handlers in a thread: the same, handed over to the event loop."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop, *args: Any) -> None:
        super().__init__(*args)
        self._loop = loop

    def report(self, **fields: Any) -> None:
        self._loop.call_soon_threadsafe(lambda: LoopLine.report(self, **fields))

    def log(self, level: str, message: str) -> None:
        self._loop.call_soon_threadsafe(LoopLine.log, self, level, message)

    def flush_blocking(self) -> None:
        asyncio.run_coroutine_threadsafe(self.flush(), self._loop).result()
