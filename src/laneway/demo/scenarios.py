"""The jobs that something happens to, each submitted, followed to its end and told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from laneway import Job, JobHandle, Laneway
from laneway.control import jobs
from laneway.demo.events import EventLog, JobStates
from laneway.demo.workers import DemoWorkers
from laneway.domain.states import TERMINAL, Status

LOOK_S = 0.1
TABLES = 100
KILL_AT = 35
PRIMES_BELOW = 3_000_000


@dataclass(frozen=True)
class Scenario:
    """What a story needs."""

    lw: Laneway
    crew: DemoWorkers
    chronicle: EventLog
    tally: JobStates

    async def submit(self, job_type: str, payload: dict[str, object] | None = None) -> JobHandle:
        handle = await self.lw.submit(job_type, payload)
        self.tally.expect([handle])
        return handle

    def tell(self, text: str) -> None:
        self.chronicle.tell(text)

    async def seen(self, handle: JobHandle, is_so: Callable[[Job], bool]) -> Job | None:
        """The job as soon as this holds; None if it ends before."""
        async for job in jobs.follow(self.lw.database, handle.id, interval=LOOK_S):
            if is_so(job):
                return job
        return None


@dataclass(frozen=True)
class Kill:
    """Which attempt of which job lost its worker, and how far it had come by then."""

    job: JobHandle
    attempt: int
    done: int


async def project(scene: Scenario) -> None:
    """A long one with progress."""
    handle = await scene.submit("projection")
    await handle.wait()
    scene.tell("projection completed; meanwhile no other lane had to wait for it")


async def synchronise(scene: Scenario) -> None:
    """One that fails, waits and succeeds."""
    handle = await scene.submit("sync_calendar", {"account": "ada"})
    told = 0
    async for job in jobs.follow(scene.lw.database, handle.id, interval=LOOK_S):
        failed = job.retries
        if failed > told:
            why = (await handle.get()).attempts[failed - 1].error
            reason = why.message if why is not None else "it failed"
            scene.tell(f"attempt {failed} of sync_calendar failed: {reason}; it will retry")
            told = failed
        if job.status is Status.COMPLETED:
            scene.tell(f"attempt {job.attempt} of sync_calendar completed")


async def kill_and_resume(scene: Scenario) -> Kill | None:
    """One whose worker is killed with kill -9, and that goes on from its checkpoint."""
    handle = await scene.submit("restore", {"backup": "monday", "tables": TABLES})
    job = await scene.seen(handle, lambda job: _done(job) >= KILL_AT)
    member = scene.crew.holder(job.claimed_by) if job is not None else None
    if job is None or member is None:
        return None
    # Only what is stored counts: the table in its hands is lost with the worker.
    kill = Kill(handle, job.attempt, _done(job))
    scene.tell(f"kill -9 worker {member.letter}, with restore at {kill.done}/{TABLES}")
    member.kill()

    def is_lost(job: Job) -> bool:
        return job.attempt > kill.attempt or job.status is not Status.RUNNING

    if await scene.seen(handle, is_lost) is None:
        return kill
    scene.tell("the lease of restore lapsed: the watchdog takes it back")
    await scene.seen(handle, lambda job: job.attempt > kill.attempt)
    await _tell_resumption(scene, kill)
    result = await handle.wait()
    if isinstance(result, dict):
        scene.tell(f"restore completed: its last attempt had {result['count']} tables left to do")
    return kill


async def count_primes(scene: Scenario) -> None:
    """One in a process of its own."""
    handle = await scene.submit("count_primes", {"below": PRIMES_BELOW})
    count = await handle.wait()
    scene.tell(f"count_primes, in a process of its own: {count:,} below {PRIMES_BELOW:,}")


async def cancel_runaway(scene: Scenario) -> None:
    """One that never ends by itself."""
    handle = await scene.submit("runaway")
    await scene.seen(handle, lambda job: job.status is Status.RUNNING)
    await asyncio.sleep(2.0)
    scene.tell("runaway does not listen: cancelled")
    await jobs.cancel(scene.lw.database, handle.id, by="demo", reason="it does not end by itself")
    await scene.seen(handle, lambda job: job.status is Status.CANCELLED)
    scene.tell("runaway was stopped with its process; its worker works on")


OTHERS = (project, synchronise, count_primes, cancel_runaway)


def _done(job: Job) -> int:
    return int(job.progress.done or 0) if job.progress else 0


async def _tell_resumption(scene: Scenario, kill: Kill) -> None:
    """Tells where the attempt after the kill began, as soon as it has said so."""
    while True:
        job = await kill.job.get()
        for each in job.attempts:
            if each.attempt > kill.attempt and each.log:
                letter = scene.crew.letter(each.claimed_by)
                said = each.log[0].message
                scene.tell(f"attempt {each.attempt} of restore {said}, on worker {letter}")
                return
        if job.status in TERMINAL:
            return
        await asyncio.sleep(LOOK_S)
