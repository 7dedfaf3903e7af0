"""C26: a few jobs of one lane and many of another need one limit, while workers are killed.

The jobs hold it for a run or for a call. Each lane has separate workers, so the worker that
releases the limit is seldom the next to hold it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from laneway import Laneway
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import Job, RowRun, wait_until

ROUNDS = 12
BACKLOG, FEW = 40, 2
# Long compared with the time that a busy machine needs to wake a worker.
MS = 60
DRAIN_S = 40.0
# Jobs of the other lane that may go first while one of higher priority waits: those that already
# hold the limit or are chosen, and some for a worker that was killed while chosen.
MAX_BEFORE = 8

PREPARE = """
update laneway.limits set max_concurrent = 1 where name in ('scarce', 'call');
insert into laneway.worker_lanes (name, job_types, max_slots, lease_seconds, poll_interval_ms)
values ('calm', '{limited,calling}', null, 2, 250),
       ('eager', '{limited_eager,calling_eager}', null, 2, 250);
"""
# Two each, so that one is left to serve the lane.
LANES = ("calm", "calm", "eager", "eager")
CALM, EAGER = ("limited", "calling"), ("limited_eager", "calling_eager")


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.policy_app:lw"
    run.conn.execute(PREPARE)
    workers = [run.start_worker(lanes=lane) for lane in LANES]
    await run.ready(*workers)
    async with run.client() as client:
        for number in range(run.count(ROUNDS, 4)):
            await _fill(run, client)
            urgent = [
                run.job(job_type, {"priority": 10}, ms=MS) for job_type in EAGER for _ in range(FEW)
            ]
            ids = await run.submit(client, *urgent)
            run.history.add("met", kind="backlog", waiting=_waiting(run))
            if number % 2:
                await _kill(run, workers)
            await wait_until(partial(_ended, run, ids), 30, "the few have ended")
        await run.drain(DRAIN_S)


async def _fill(run: RowRun, client: Laneway) -> None:
    """Top up the queue of the lane with few jobs; the jobs still wait at the end."""
    jobs: list[Job] = []
    for job_type in CALM:
        there = int(
            run.ask("select count(*) from laneway.ready where job_type = %s", job_type)
        ) + int(run.ask("select count(*) from laneway.lease where job_type = %s", job_type))
        jobs += [run.job(job_type, ms=MS) for _ in range(BACKLOG - there)]
    if jobs:
        await run.submit(client, *jobs)
    await wait_until(
        lambda: run.ask(
            "select count(distinct limit_name) = 2 from laneway.limit_turns where waits"
        ),
        30,
        "both limits are waited for",
        0.005,
    )


def _waiting(run: RowRun) -> int:
    return int(
        run.ask(
            "select min(n) from (select count(*) as n from laneway.jobs_view"
            " where job_type = any (%s) and status in ('approved', 'running') group by job_type) x",
            list(CALM),
        )
        or 0
    )


async def _kill(run: RowRun, workers: list[WorkerProcess]) -> None:
    place = run.random.randrange(len(workers))
    worker = workers[place]
    run.kill(worker, worker.pid)
    worker.process.wait()
    workers[place] = run.start_worker(lanes=LANES[place])
    await run.ready(workers[place])


def _ended(run: RowRun, ids: list[str]) -> bool:
    return bool(
        run.ask(
            "select count(*) = %s from laneway.outcome o join laneway.jobs j using (seq)"
            " where j.id = any (%s::uuid[])",
            len(ids),
            ids,
        )
    )


# What must hold -----------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result, history = run.result, run.history
    types: dict[str, str] = dict(
        run.conn.execute("select id::text, job_type from laneway.jobs").fetchall()
    )
    submitted = {
        e.job: e.more["t"] for e in history.of("submit") if e.more["phase"] == "ok" and e.job
    }
    waiting = min(event.more["waiting"] for event in history.of("met"))
    result.must(
        f"jobs of the other lane waiting when the few came > {MAX_BEFORE}",
        waiting,
        held=waiting > MAX_BEFORE,
    )
    before: Counter[str] = Counter()
    for event in history.of("hold"):
        job = event.job or ""
        # Of a job killed while holding, the first time.
        if types[job] in EAGER and event.attempt == 1:
            (name,) = event.more["names"]
            before[job] = sum(
                name in other.more["names"]
                and types[other.job or ""] in CALM
                and submitted[job] < other.more["t"] < event.more["t"]
                for other in history.of("hold")
            )
    most = max(before.values(), default=0)
    result.must(
        f"served before one of higher priority in another lane ≤ {MAX_BEFORE}",
        most,
        held=bool(before) and most <= MAX_BEFORE,
    )
    done = sum(job.status == "completed" for job in run.final.jobs.values())
    result.must("completed", f"{done}/{result.jobs}", held=done == result.jobs)
    left = run.final.limits
    result.must("limits left in use", left, held=left == 0)
    result.figures.update(turns_most_before=most)
