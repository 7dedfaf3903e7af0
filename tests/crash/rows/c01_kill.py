"""C1: kill -9 of a random worker, once a second, under a mixed load."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from laneway.testing.history import HistoryEvent
from tests.crash.load import cancel_some, feed
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import READY_S, RowRun, cancel_load, percentile, wait_until

FAULTS, JOBS = 30, 4000
EVERY_S = 1.0
RECOVERY_S = 4.0
LOST = ("lost", "spared")


async def inject(run: RowRun) -> None:
    kills = run.count(FAULTS, 2)
    seconds = kills * EVERY_S + 1
    cancelled = run.count(60, 6)
    workers = [run.start_worker() for _ in range(3)] + [run.start_worker(is_supervised=True)]
    await run.ready(*workers)
    async with run.client() as client:
        load = asyncio.gather(
            feed(run, client, run.count(JOBS) - cancelled, kills, EVERY_S),
            cancel_some(run, client, cancelled, seconds),
        )
        try:
            await _kill_some(run, workers, kills)
            await load
        finally:
            await cancel_load(load)
        await run.drain()


async def _kill_some(run: RowRun, workers: list[WorkerProcess], kills: int) -> None:
    began = time.monotonic()
    for i in range(1, kills + 1):
        await asyncio.sleep(max(0.0, began + i * EVERY_S - time.monotonic()))
        place = await _anyone(run, workers)
        worker = workers[place]
        doomed = _victims(run, worker)
        run.kill(worker, *doomed)
        if worker.pid in doomed:
            worker.process.wait()
            workers[place] = run.start_worker(is_supervised=worker.is_supervised)


async def _anyone(run: RowRun, workers: list[WorkerProcess]) -> int:
    """The index of a random worker that runs jobs; one worker must be left to recover."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [i for i, worker in enumerate(workers) if run.is_at_work(worker)]
        return len(found) >= 2

    await wait_until(look, READY_S, "the workers are ready")
    return run.random.choice(found)


def _victims(run: RowRun, worker: WorkerProcess) -> list[int]:
    """The worker alone; of a supervised one its child, whose jobs return at once, or both."""
    if not worker.is_supervised:
        return [worker.pid]
    child = run.worker_pid(worker)
    return [child] if child is not None and run.random.random() < 0.4 else worker.tree()


def check(run: RowRun) -> None:
    recovery = _recovery(run)
    p99 = percentile(recovery, 0.99)
    run.must_in_time(
        f"jobs of a killed worker run again, p99 ≤ {RECOVERY_S:g} s",
        f"{p99:.2f} s of {len(recovery)} jobs (p50 {percentile(recovery, 0.5):.2f} s)",
        bool(recovery) and p99 <= RECOVERY_S,
    )
    repeated, lost = _resumes(run)
    run.result.must(
        "tracked jobs go on from their checkpoint",
        f"{lost} of {repeated} resumed attempts did not",
        held=lost == 0,
    )
    ends = [job.status for job in run.final.jobs.values()]
    counts = ", ".join(f"{ends.count(s)} {s}" for s in ("completed", "failed", "cancelled"))
    run.result.lines.append(f"     {counts}")
    worker_lost = [job for job in run.final.jobs.values() if job.status == "failed"]
    wrong = [job for job in worker_lost if (job.error or {}).get("type") != "WorkerLost"]
    run.result.must("failed only because a worker was lost", len(wrong), held=not wrong)


def _recovery(run: RowRun) -> list[float]:
    """Seconds from the kill to the next claim, or to the end of a job whose budget is spent.

    Jobs in child processes do not count: they wait for an interpreter to start.
    """
    history = run.history
    isolated = {e.job for e in history.of("claim") if e.more["lane"] == "isolated"}
    died_at = {death.more["pid"]: death.at for death in history.of("death")}
    pid_of = {event.more["worker"]: event.more["pid"] for event in history.of("worker")}
    lost = {(e.tx, e.job) for e in history.of("write") if e.more["verb"] in LOST}
    found = []
    for job, events in history.per_job("claim", "end", "outcome").items():
        if job in isolated:
            continue
        for i, event in enumerate(events):
            if event.what == "end" and (event.tx, job) in lost:
                died = died_at.get(pid_of[event.more["worker"]])
                after = _next(events[i + 1 :])
                if died is not None and after is not None:
                    found.append(after - died)
    return found


def _next(events: list[HistoryEvent]) -> float | None:
    return next((event.at for event in events if event.what in ("claim", "outcome")), None)


def _resumes(run: RowRun) -> tuple[int, int]:
    """Attempts that resumed after the items of an earlier one, and those that did not.

    A kill may come before the last recorded item was stored: that item may repeat.
    """
    resumed = wrong = 0
    for events in run.history.per_job("item").values():
        reached: dict[int, int] = {}
        first: dict[int, int] = {}
        for event in sorted(events, key=lambda event: float(event.more["t"])):
            attempt, item = event.attempt or 0, event.more["item"]
            first.setdefault(attempt, item)
            reached[attempt] = item
        attempts = sorted(first)
        for before, after in pairwise(attempts):
            resumed += 1
            wrong += first[after] not in (reached[before], reached[before] + 1)
    return resumed, wrong
