"""Requests that handlers make of their worker and wait for, wherever the handler runs.

flush      store the reports made so far
steps      return the finished steps of the job, by name, as JSON text
keep       store a step's result; return it as later attempts will read it
acquire    acquire the named limits
release    release them
finishing  note that the handler's own transaction may end the job from now on
refused    note that this transaction got cancel_requested or fenced, or failed
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from laneway.domain.claim import Claim
from laneway.engine.claim.call_limits import CallLimits
from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.lease.reporter import Reporter
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_channel import finished_error
from laneway.errors import DatabaseUnavailable, InvalidInput, SchemaMismatch, StaleAttempt
from laneway.observability.log_throttle import LogThrottle
from laneway.store.batcher import Batcher
from laneway.store.handler_waits import EndedRow, NewWait, StoredWait
from laneway.store.leases import WriteResult

BUSY_S = 0.05
LONGEST_BACKOFF_S = 2.0
CANCEL_S = 1.0
WAITS_AT_ONCE = 200
# Requests that write about the job, and the call of `ctx` that makes each.
WRITES = {
    "flush": "save",
    "steps": "step",
    "keep": "step",
    "acquire": "limit",
    "wait": "sleep",
    "sub_jobs": "run_all",
}


class _FencedWrite(Protocol):
    @property
    def answer(self) -> str: ...


T = TypeVar("T")
W = TypeVar("W", bound=_FencedWrite)


class HandlerRequests:
    """Answers the requests of one worker's handlers, on its event loop."""

    def __init__(
        self,
        store: AttemptStore,
        warnings: LogThrottle,
        on_answer: Callable[[WriteResult], None],
        on_submitted: Callable[[set[str]], None],
    ) -> None:
        self.reporter = Reporter(store, warnings, on_answer)
        self._store = store
        self.has_database = store.has_database
        self._warnings = warnings
        self._on_answer = on_answer
        self._on_submitted = on_submitted
        self.limits = CallLimits(store, warnings)
        # Jobs that go on together read their waits together.
        self._waits: Batcher[Claim, list[StoredWait]] = Batcher(
            store.read_waits, most=WAITS_AT_ONCE
        )

    async def answer(self, run: Run, what: str, body: dict[str, Any]) -> Any:
        """Answer a request; raises StaleAttempt if the attempt is superseded."""
        if run.is_finishing and what in WRITES:
            raise finished_error(WRITES[what])
        match what:
            case "flush":
                await self.reporter.flush(run.claim)
            case "steps":
                return await self._read_steps(run)
            case "keep":
                return await self._keep_step(run, **body)
            case "waits":
                return await self._repeat(run, partial(self._read_waits, run.claim))
            case "wait":
                return await self._begin_wait(run, NewWait(**body))
            case "sub_jobs":
                await self._submit_sub_jobs(run, **body)
            case "sub_results":
                read = partial(self._store.sub_job_results, run.claim, body["name"], body["after"])
                return _plain(await self._repeat(run, read))
            case "results":
                read = partial(self._store.results_of, run.claim, body["after"])
                return _plain(await self._repeat(run, read))
            case "acquire":
                await self._acquire(run, **body)
            case "release":
                await self.limits.release(run, body["names"])
            case "finishing":
                await self._finishing(run)
            case "refused":
                run.is_finishing = False
                self._handle_refusal(run, body["answer"], at_once=False)
            case _:
                raise AssertionError(what)
        return None

    async def close(self) -> None:
        await self._waits.close()
        await self.limits.close()

    async def _acquire(self, run: Run, names: list[str], inside: dict[str, int]) -> None:
        answer = await self.limits.acquire(run, names, inside)
        if answer != "granted":
            self._handle_refusal(run, answer, at_once=False)
            # The handler is being cancelled, and must not go on without the limits.
            await asyncio.sleep(CANCEL_S)
            raise asyncio.CancelledError

    # Steps --------------------------------------------------------------------------------------

    async def _read_steps(self, run: Run) -> dict[str, str]:
        return await self._repeat(run, partial(self._store.read_steps, run.claim))

    async def _keep_step(self, run: Run, name: str, result: str, took_s: float) -> str | None:
        write = partial(self._store.keep_step, run.claim, name, result, took_s)
        kept = await self._write(run, "step", write)
        self._handle_refusal(run, kept.answer, at_once=True)
        return kept.result

    # Waits --------------------------------------------------------------------------------------

    async def _read_waits(self, claim: Claim) -> list[StoredWait]:
        # A server answers about one job, and not every server about each.
        read = self._waits.run if self.has_database else self._store.read_waits
        (found,) = await read([claim])
        return found

    async def _begin_wait(self, run: Run, wait: NewWait) -> dict[str, str | None]:
        write = partial(self._store.begin_wait, run.claim, wait)
        kept = await self._write(run, "sleep", write)
        await self._stop_if_refused(run, kept.answer)
        return {"state": kept.state, "result": kept.result}

    async def _submit_sub_jobs(
        self, run: Run, name: str, total: int, offset: int, jobs: list[list[Any]]
    ) -> None:
        write = partial(self._store.submit_sub_jobs, run.claim, name, total, offset, jobs)
        kept = await self._write(run, "run_all", write)
        await self._stop_if_refused(run, kept.answer)
        if kept.job_types:
            self._on_submitted(set(kept.job_types))

    async def _stop_if_refused(self, run: Run, answer: str) -> None:
        """Cancel a handler that must not go on; what it asked for was not stored."""
        if answer != "kept":
            self._handle_refusal(run, answer, at_once=False)
            await asyncio.sleep(CANCEL_S)
            raise asyncio.CancelledError

    # Repeated reads and writes ------------------------------------------------------------------

    async def _repeat(self, run: Run, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call again while the database is away."""
        failures = 0
        while True:
            try:
                return await call()
            except DatabaseUnavailable as error:
                failures += 1
                await self._back_off(run, error, failures)

    async def _write(self, run: Run, verb: str, call: Callable[[], Awaitable[W]]) -> W:
        """Make a fenced write, also again while another transaction locks the lease."""
        while (kept := await self._repeat(run, call)).answer == "busy":
            if run.ended:
                raise StaleAttempt(f"attempt {run.claim.attempt} is over")
            if run.is_finishing:
                raise finished_error(verb)
            await asyncio.sleep(BUSY_S)
        return kept

    async def _back_off(self, run: Run, error: DatabaseUnavailable, failures: int) -> None:
        """Pause before a retry, so that a lost connection loses no step; raise if it is useless."""
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
            # Store the reports first: after the end they would be refused.
            if run.has_reports:
                await self.reporter.flush(run.claim)
        except BaseException:
            run.is_finishing = was_finishing
            raise

    # Refused writes -------------------------------------------------------------------------------

    def _handle_refusal(self, run: Run, answer: str, *, at_once: bool) -> None:
        """Stop a run that should be cancelled; raise StaleAttempt in one that is superseded.

        Never both, so that cleanup after StaleAttempt is not cancelled. `at_once` is False if this
        may be the handler's own task, which must be cancelled while it waits.
        """
        if answer == "fenced":
            raise StaleAttempt(f"attempt {run.claim.attempt} of job {run.claim.job_id} is over")
        if answer == "cancel_requested":
            result = WriteResult(run.claim.seq, run.claim.attempt, answer)
            if at_once:
                self._on_answer(result)
            else:
                asyncio.get_running_loop().call_soon(self._on_answer, result)


def _plain(rows: Sequence[EndedRow]) -> list[tuple[str | None, ...]]:
    """The rows as JSON values, which is all that a child process can be sent."""
    return [(None if row.id is None else str(row.id), *row[1:]) for row in rows]
