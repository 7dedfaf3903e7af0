"""Scenarios: each submits a job, follows it to its end and records what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from laneway import Job, JobHandle, Laneway
from laneway.control import jobs
from laneway.demo.events import EventLog, JobStates
from laneway.demo.workers import DemoWorkers
from laneway.domain.states import TERMINAL, Status

POLL_S = 0.1
TABLES = 100
KILL_AT = 35
PRIMES_BELOW = 3_000_000
DOCUMENTS = 10
IMAGES = 36


@dataclass(frozen=True)
class Scenario:
    """The objects that every scenario uses."""

    lw: Laneway
    workers: DemoWorkers
    event_log: EventLog
    job_states: JobStates

    async def submit(self, job_type: str, payload: dict[str, object] | None = None) -> JobHandle:
        handle = await self.lw.submit(job_type, payload)
        self.job_states.expect([handle])
        return handle

    def record(self, text: str) -> None:
        self.event_log.record(text)

    async def wait_until(self, handle: JobHandle, holds: Callable[[Job], bool]) -> Job | None:
        """Return the job as soon as the condition holds; None if it ends before."""
        async for job in jobs.follow(self.lw.database, handle.id, interval=POLL_S):
            if holds(job):
                return job
        return None


@dataclass(frozen=True)
class Kill:
    """The attempt whose worker was killed, and its progress at that time."""

    job: JobHandle
    attempt: int
    done: int


async def project(scenario: Scenario) -> None:
    """A long job with progress."""
    handle = await scenario.submit("projection")
    await handle.wait()
    scenario.record("projection completed; no other lane waited for it")


async def synchronise(scenario: Scenario) -> None:
    """A job that fails, waits and succeeds."""
    handle = await scenario.submit("sync_calendar", {"account": "ada"})
    recorded = 0
    async for job in jobs.follow(scenario.lw.database, handle.id, interval=POLL_S):
        failed = job.retries
        if failed > recorded:
            why = (await handle.get()).attempts[failed - 1].error
            reason = why.message if why is not None else "it failed"
            scenario.record(f"attempt {failed} of sync_calendar failed: {reason}; it will retry")
            recorded = failed
        if job.status is Status.COMPLETED:
            scenario.record(f"attempt {job.attempt} of sync_calendar completed")


async def kill_and_resume(scenario: Scenario) -> Kill | None:
    """A job whose worker gets kill -9; another worker resumes it from its checkpoint."""
    handle = await scenario.submit("restore", {"backup": "monday", "tables": TABLES})
    job = await scenario.wait_until(handle, lambda job: _done(job) >= KILL_AT)
    worker = scenario.workers.holder(job.claimed_by) if job is not None else None
    if job is None or worker is None:
        return None
    # Only saved progress counts: the table being restored is lost with the worker.
    kill = Kill(handle, job.attempt, _done(job))
    scenario.record(f"kill -9 worker {worker.letter}, with restore at {kill.done}/{TABLES}")
    worker.kill()

    def is_lost(job: Job) -> bool:
        return job.attempt > kill.attempt or job.status is not Status.RUNNING

    if await scenario.wait_until(handle, is_lost) is None:
        return kill
    scenario.record("the lease of restore lapsed: the watchdog reclaims the job")
    await scenario.wait_until(handle, lambda job: job.attempt > kill.attempt)
    await _record_resumption(scenario, kill)
    result = await handle.wait()
    if isinstance(result, dict):
        scenario.record(
            f"restore completed: the last attempt did the remaining {result['count']} tables"
        )
    return kill


async def count_primes(scenario: Scenario) -> None:
    """A job in a separate process."""
    handle = await scenario.submit("count_primes", {"below": PRIMES_BELOW})
    count = await handle.wait()
    scenario.record(f"count_primes, in a separate process: {count:,} below {PRIMES_BELOW:,}")


async def cancel_runaway(scenario: Scenario) -> None:
    """A job that never ends by itself."""
    handle = await scenario.submit("runaway")
    await scenario.wait_until(handle, lambda job: job.status is Status.RUNNING)
    await asyncio.sleep(2.0)
    scenario.record("runaway never ends: cancelling it")
    await jobs.cancel(scenario.lw.database, handle.id, by="demo", reason="it never ends by itself")
    await scenario.wait_until(handle, lambda job: job.status is Status.CANCELLED)
    scenario.record("runaway was stopped by killing its process; its worker continues")


OTHERS = (project, synchronise, count_primes, cancel_runaway)


def _done(job: Job) -> int:
    return int(job.progress.done or 0) if job.progress else 0


async def _record_resumption(scenario: Scenario, kill: Kill) -> None:
    """Record where the attempt after the kill resumed, as soon as it has logged that."""
    while True:
        job = await kill.job.get()
        for each in job.attempts:
            if each.attempt > kill.attempt and each.log:
                letter = scenario.workers.letter(each.claimed_by)
                message = each.log[0].message
                scenario.record(f"attempt {each.attempt} of restore {message}, on worker {letter}")
                return
        if job.status in TERMINAL:
            return
        await asyncio.sleep(POLL_S)


async def submit_burst(lw: Laneway, event_log: EventLog, job_states: JobStates) -> None:
    """Submit more jobs than the lanes have slots, so that some wait."""
    event_log.record(f"{DOCUMENTS} documents for `interactive`, {IMAGES} images for `default`")
    job_states.expect(
        await lw.submit_many(
            ("ingestion", {"path": f"report-{n}.pdf", "pages": 3 + n % 4}) for n in range(DOCUMENTS)
        )
    )
    job_states.expect(
        await lw.submit_many(("thumbnail", {"image": f"photo-{n}.jpg"}) for n in range(IMAGES))
    )
