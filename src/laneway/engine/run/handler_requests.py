"""What handlers ask of their worker and wait for: one way, wherever the handler runs.

flush      what was reported so far is stored
steps      the finished steps of the job, by name, as JSON text
keep       a step's result is stored; answers it as it will be read
acquire    the limits named are held
release    they are given back
finishing  from now on the job may end in the handler's own transaction
met        what the handler's own transaction met instead: cancel_requested, fenced or failed
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from laneway.engine.claim.call_limits import CallLimits
from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.lease.reporter import Reporter
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_channel import after_finish
from laneway.errors import DatabaseUnavailable, InvalidInput, SchemaMismatch, StaleAttempt
from laneway.store.leases import WriteResult

BUSY_S = 0.05
LONGEST_BACKOFF_S = 2.0
CANCEL_S = 1.0
# What writes about the job, and the call of the context that asks for it.
WRITES = {"flush": "save", "steps": "step", "keep": "step", "acquire": "limit"}


class HandlerRequests:
    """Answers the handlers of one worker process, on its event loop."""

    def __init__(
        self,
        store: AttemptStore,
        warnings: ThrottledWarnings,
        on_answer: Callable[[WriteResult], None],
    ) -> None:
        self.reporter = Reporter(store, warnings, on_answer)
        self._store = store
        self.has_database = store.has_database
        self._warnings = warnings
        self._on_answer = on_answer
        self.limits = CallLimits(store, warnings)

    async def answer(self, run: Run, what: str, body: dict[str, Any]) -> Any:
        """The answer; raises StaleAttempt where the attempt is not the one running."""
        if run.is_finishing and what in WRITES:
            raise after_finish(WRITES[what])
        match what:
            case "flush":
                await self.reporter.flush(run.claim)
            case "steps":
                return await self._read(run)
            case "keep":
                return await self._keep(run, **body)
            case "acquire":
                await self._acquire(run, **body)
            case "release":
                await self.limits.release(run, body["names"])
            case "finishing":
                await self._finishing(run)
            case "met":
                run.is_finishing = False
                self._handle_refusal(run, body["answer"], at_once=False)
            case _:
                raise AssertionError(what)
        return None

    async def close(self) -> None:
        await self.limits.close()

    async def _acquire(self, run: Run, names: list[str], inside: dict[str, int]) -> None:
        answer = await self.limits.acquire(run, names, inside)
        if answer != "granted":
            self._handle_refusal(run, answer, at_once=False)
            # It is cancelled now, and must not go on with what it has not got.
            await asyncio.sleep(CANCEL_S)
            raise asyncio.CancelledError

    # Steps --------------------------------------------------------------------------------------

    async def _read(self, run: Run) -> dict[str, str]:
        failures = 0
        while True:
            try:
                return await self._store.read_steps(run.claim)
            except DatabaseUnavailable as error:
                failures += 1
                await self._put_off(run, error, failures)

    async def _keep(self, run: Run, name: str, result: str, took_s: float) -> str | None:
        failures = 0
        while True:
            try:
                kept = await self._store.keep_step(run.claim, name, result, took_s)
            except DatabaseUnavailable as error:
                failures += 1
                await self._put_off(run, error, failures)
                continue
            if kept.answer != "busy":
                self._handle_refusal(run, kept.answer, at_once=True)
                return kept.result
            if run.ended:
                raise StaleAttempt(f"attempt {run.claim.attempt} is over")
            if run.is_finishing:
                raise after_finish("step")
            # Somebody writes this row.
            await asyncio.sleep(BUSY_S)

    async def _put_off(self, run: Run, error: DatabaseUnavailable, failures: int) -> None:
        """What a step has done is not lost with a connection: again, unless the job should stop."""
        if isinstance(error, SchemaMismatch) or run.stop_reason is not None:
            raise error
        self._warnings.warn("step", error)
        longest = min(LONGEST_BACKOFF_S, 0.05 * 2.0 ** min(failures, 10))
        await asyncio.sleep(longest * random.uniform(0.5, 1.0))

    # The handler's own transaction ----------------------------------------------------------------

    async def _finishing(self, run: Run) -> None:
        if run.handler.is_analysis:
            raise InvalidInput("finish", "an analysis does not finish its job")
        was_finishing, run.is_finishing = run.is_finishing, True
        try:
            # What was reported so far is stored before the end: later it would be refused.
            if run.reports:
                await self.reporter.flush(run.claim)
        except BaseException:
            run.is_finishing = was_finishing
            raise

    # What was answered ----------------------------------------------------------------------------

    def _handle_refusal(self, run: Run, answer: str, *, at_once: bool) -> None:
        """Stops a run that is to be cancelled; raises StaleAttempt in one that is superseded.

        Not at once where this may be the handler's own task: it is cancelled while it waits. And
        not both: what the handler cleans up after a StaleAttempt is not disturbed.
        """
        if answer == "fenced":
            raise StaleAttempt(f"attempt {run.claim.attempt} of job {run.claim.job_id} is over")
        if answer == "cancel_requested":
            told = WriteResult(run.claim.seq, run.claim.attempt, answer)
            if at_once:
                self._on_answer(told)
            else:
                asyncio.get_running_loop().call_soon(self._on_answer, told)
