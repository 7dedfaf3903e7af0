"""A worker that a test steps: it runs what is due, in the test's own process, and ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from laneway.config.settings import Settings
from laneway.domain.approval import analysed_type
from laneway.domain.claim import Claim
from laneway.domain.job_error import JobError
from laneway.engine.claim.capacity import Capacity
from laneway.engine.claim.lane_loop import LaneLoop
from laneway.engine.lease.heartbeat import Heartbeat
from laneway.engine.run.executor import Executor
from laneway.engine.runtime import AttemptWrites
from laneway.engine.worker import Worker
from laneway.store.database import Database
from laneway.store.lanes import peek
from laneway.store.leases import Assignment, Verdict, WriteResult, heartbeat
from laneway.testing.recorded_handlers import RecordedHandlers
from laneway.testing.report import AttemptReport, Outcome, StillRunning, keep_coming_back
from laneway.testing.scratch_database import ScratchDatabase

# How often a running attempt renews its lease and learns of a cancellation.
RENEW_S: Final = 0.5
# How often to look for work beside jobs that run.
LOOK_S: Final = 0.02
SETTLE_S: Final = 30.0

_OUTCOMES: Final[dict[str, Outcome]] = {
    "finish": "completed",
    "confirm": "completed",
    "analyzed": "analyzed",
    "snooze": "snoozed",
    "release": "released",
    "wait": "waiting",
    "cancel": "cancelled",
    "fail": "retrying",
    "giveup": "failed",
}
_ENDS: Final[dict[str, Outcome]] = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


class InProcessHeartbeat(Heartbeat):
    """Renews leases when asked, without a child process."""

    database: Database

    @property
    def is_ready(self) -> bool:
        return True

    def start(self) -> None:
        """Do nothing: `renew` is called."""

    async def renew(self) -> None:
        if not self._held:
            return
        seqs, attempts = zip(*self._held, strict=True)
        for answer in await self.database.run(heartbeat(seqs, attempts)):
            if answer.answer != "accepted":
                self._handle(answer.answer, answer.seq, answer.attempt)


class Starts:
    """Starts claimed jobs and remembers them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.job_types: dict[Claim, str] = {}

    def start(self, assignments: Sequence[Assignment], lane: str) -> None:
        self.job_types.update({one.claim: analysed_type(one.job_type) for one in assignments})
        self._executor.start(assignments, lane)


class SharedRoom:
    """Room for a number of jobs at once, of all lanes together: none is kept for other lanes."""

    def __init__(self, capacity: Capacity, jobs: int) -> None:
        self._capacity = capacity
        self._jobs = jobs

    def free(self, lane: str, isolation: str) -> int:
        return self.most(lane)

    def most(self, lane: str) -> int:
        return max(0, self._jobs - self._capacity.in_use)

    def take(self, lane: str, isolation: str, count: int) -> None:
        self._capacity.take(lane, isolation, count)


class DueWorker(Worker):
    """Runs jobs one after the other, in the order of claims, and the leader's work between them."""

    heartbeat: InProcessHeartbeat

    def __init__(
        self,
        database: ScratchDatabase,
        settings: Settings,
        handlers: RecordedHandlers,
        concurrency: int,
    ) -> None:
        super().__init__(database.dsn, settings, handlers, name="run_due")
        self._database = database
        self._concurrency = concurrency
        self._handlers = handlers
        self.attempts: list[AttemptReport] = []

    # Stepping instead of loops ----------------------------------------------------------------

    async def _open(self) -> AttemptWrites:
        writes = await super()._open()
        beats = InProcessHeartbeat({}, self.settings, self._warnings, self._on_heartbeat)
        beats.database = self.databases.rest
        return writes._replace(heartbeat=beats)

    def _build(self) -> None:
        super()._build()
        self._starts = Starts(self.executor)
        self._room = SharedRoom(self.capacity, self._concurrency)
        self._tools = replace(self._tools, executor=self._starts, capacity=self._room)

    async def _receive(self) -> None:
        await self.refresh()

    def _start_loop(self, loop: LaneLoop) -> None:
        """Do nothing: `run_due` calls `run_once`."""

    async def run_due(self, max_jobs: int, timeout: float) -> None:
        """Run until nothing is due; raises TooManyAttempts or StillRunning."""
        try:
            async with asyncio.timeout(timeout) as deadline:
                while await self._run_pass(max_jobs) or await self._has_late_jobs():
                    pass
        except TimeoutError:
            if not deadline.expired():
                raise
            raise self._still_running(timeout) from None

    async def _run_pass(self, max_jobs: int) -> bool:
        """Do the leader's work and claim once around; return whether anything ran or runs."""
        await self.lead()
        await self.poller.run_once()
        has_claimed = False
        for lane in sorted(self.loops):
            while await self._claim(self.loops[lane]):
                has_claimed = True
                await self._wait()
                if len(self._starts.job_types) >= max_jobs:
                    await self._check_bound(max_jobs)
        if has_claimed or self.executor.is_done:
            return has_claimed
        await self._wait()
        return True

    async def lead(self) -> None:
        """Reclaim lapsed leases, expire and delete old jobs, fire schedules."""
        services = self.leader_services
        while await services.watchdog.run_once() == 0:
            pass
        while await services.retention.run_once() == 0 or services.retention.is_walking:
            pass
        fired = -1
        while fired != (fired := self._count_fired()):
            while await services.scheduler.run_once() == 0:
                pass
            await services.scheduler.checked()

    async def _claim(self, loop: LaneLoop) -> bool:
        before = len(self._starts.job_types)
        while await loop.run_once() == 0 and len(self._starts.job_types) == before:
            pass
        return len(self._starts.job_types) > before

    async def _wait(self) -> None:
        """Wait until the running jobs have ended, or, with room for more jobs, for a moment."""
        has_room = self.capacity.in_use < self._concurrency
        while True:
            try:
                async with asyncio.timeout(LOOK_S if has_room else RENEW_S):
                    await self.executor.idle.wait()
                    break
            except TimeoutError:
                await self.heartbeat.renew()
                if has_room:
                    break
        await self.completer.flush(SETTLE_S)

    async def _has_late_jobs(self) -> bool:
        """Whether delayed jobs are due that the last look did not promote: it is bounded."""
        found = await self.databases.rest.run(peek(self.job_types()))
        return bool(found.promoted)

    def _count_fired(self) -> int:
        return int(self._database.execute("select count(*) from laneway.schedule_slots")[0][0])

    async def _check_bound(self, max_jobs: int) -> None:
        found = await self.databases.rest.run(peek(self.job_types()))
        if found.due:
            raise keep_coming_back(self.attempts, max_jobs)

    def _still_running(self, timeout: float) -> StillRunning:
        runs = [run for run in self.executor.active.values() if not run.ended]
        named = ", ".join(f"{run.handler.job_type} {run.claim.job_id}" for run in runs)
        return StillRunning(
            f"run_due did not end within {timeout:g} s; still running: {named or 'nothing'}."
            " A handler that waits for another job needs run_due(concurrency=2); one that waits"
            " for the rate of a limit needs clock.resume()"
        )

    # Recording --------------------------------------------------------------------------------

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        super()._on_settled(verdicts, answers)
        by_claim = {(one.seq, one.attempt): one for one in answers if one.attempt}
        for verdict in verdicts:
            answer = by_claim.get((verdict.claim.seq, verdict.claim.attempt))
            self.attempts.append(self._report(verdict, answer))

    def _report(self, verdict: Verdict, answer: WriteResult | None) -> AttemptReport:
        key = verdict.claim.job_id, verdict.claim.attempt
        outcome = _outcome(verdict, answer)
        error = None if outcome == "completed" else verdict.error
        return AttemptReport(
            job_id=verdict.claim.job_id,
            job_type=self._starts.job_types[verdict.claim],
            attempt=verdict.claim.attempt,
            outcome=outcome,
            result=_result(verdict),
            error=None if error is None else _error(json.loads(error)),
            exception=self._handlers.raised.get(key),
            is_injected=key in self._handlers.was_injected,
        )


def _outcome(verdict: Verdict, answer: WriteResult | None) -> Outcome:
    if answer is None:
        return _OUTCOMES[verdict.kind]
    if answer.answer == "fenced":
        return "fenced"
    return _ENDS.get(answer.status or "", _OUTCOMES[verdict.kind])


def _result(verdict: Verdict) -> object:
    # That of a wait is its name.
    if verdict.result is None or verdict.kind == "wait":
        return None
    value: object = json.loads(verdict.result)
    return value


def _error(error: dict[str, Any]) -> JobError:
    return JobError(
        error["type"], error["message"], error.get("traceback"), error.get("public") is True
    )
