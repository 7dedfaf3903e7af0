"""Handler channels inside the worker's process."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

from laneway import forks
from laneway.domain.claim import Claim
from laneway.domain.payload import PayloadLimits
from laneway.domain.redaction import redact
from laneway.domain.result_type import ResultType
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_channel import Interrupted
from laneway.engine.run.handler_requests import HandlerRequests
from laneway.errors import StaleAttempt
from laneway.store.leases import Assignment, Report


class LoopChannel:
    """For handlers on the event loop."""

    __slots__ = (
        "_requests",
        "_run",
        "checkpoint",
        "claim",
        "has_database",
        "limits",
        "payload",
        "resources",
    )

    def __init__(
        self,
        run: Run,
        requests: HandlerRequests,
        payload: Any,
        checkpoint: Any,
        resources: SimpleNamespace,
        limits: PayloadLimits,
    ) -> None:
        self._run = run
        self._requests = requests
        self.claim: Claim = run.claim
        self.has_database = requests.has_database
        self.payload = payload
        self.checkpoint = checkpoint
        self.resources = resources
        self.limits = limits

    @property
    def assignment(self) -> Assignment:
        return self._run.assignment

    @property
    def lane(self) -> str:
        return self._run.lane

    @property
    def results(self) -> ResultType:
        return self._run.handler.results

    @property
    def stop_reason(self) -> str | None:
        return self._run.stop_reason

    @property
    def ran_s(self) -> float:
        return self._run.ran_s or 0.0

    def report(
        self,
        *,
        stage: str | None = None,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        if forks.is_fork:
            raise forks.refused()
        if self._run.is_finishing:
            # The write would wait for the handler's own transaction, and then be refused.
            return
        self._run.has_reports = True
        stage = None if stage is None else redact(stage)
        message = None if message is None else redact(message)
        report = Report(self.claim, stage, done, total, message, checkpoint)
        self._requests.reporter.report(self.claim, report)

    def log(self, level: str, message: str) -> None:
        if forks.is_fork:
            raise forks.refused()
        if self._run.is_finishing:
            return
        self._run.has_reports = True
        self._run.log_lines += 1
        self._requests.reporter.line(self.claim, self._run.log_lines, level, redact(message))

    async def ask(self, what: str, **body: Any) -> Any:
        if forks.is_fork:
            raise forks.refused()
        return await self._requests.answer(self._run, what, body)

    def ask_blocking(self, what: str, **body: Any) -> Any:
        raise AssertionError("the event loop cannot wait for itself")

    async def ask_in_task(self, what: str, body: dict[str, Any]) -> Any:
        """Make a request for a handler outside the loop, in a task that the run can cancel."""
        task = asyncio.ensure_future(self._requests.answer(self._run, what, body))
        self._run.open_requests[task] = what
        try:
            return await task
        finally:
            del self._run.open_requests[task]


class ThreadChannel(LoopChannel):
    """For handlers in a thread: passes every call to the event loop."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop, *args: Any) -> None:
        super().__init__(*args)
        self._loop = loop

    def report(self, **fields: Any) -> None:
        if forks.is_fork:
            raise forks.refused()
        self._loop.call_soon_threadsafe(lambda: LoopChannel.report(self, **fields))

    def log(self, level: str, message: str) -> None:
        if forks.is_fork:
            raise forks.refused()
        self._loop.call_soon_threadsafe(LoopChannel.log, self, level, message)

    def ask_blocking(self, what: str, **body: Any) -> Any:
        if forks.is_fork:
            raise forks.refused()
        asked = asyncio.run_coroutine_threadsafe(self.ask_in_task(what, body), self._loop)
        try:
            return asked.result()
        except CancelledError:
            if self.stop_reason is not None:
                raise Interrupted(self.stop_reason) from None
            raise StaleAttempt("the worker has stopped") from None
