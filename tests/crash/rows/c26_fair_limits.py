"""C26: a few jobs of one lane and many of another want one limit, while workers are killed.

The jobs hold it for their runs or for a call each. The lanes have workers of their own, so who
frees the limit is seldom the one whose turn it is.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from laneway import Laneway
from tests.crash.processes import WorkerProcess
from tests.crash.stage import Job, Stage, until

ROUNDS = 12
BACKLOG, FEW = 40, 2
# Long beside the time in which a busy machine wakes a worker.
MS = 60
DRAIN_S = 40.0
# Jobs of the other lane that may be served while one of higher priority waits: those that were
# inside or chosen already, and some for a worker that was killed while it was its turn.
MAX_BEFORE = 8

PREPARE = """
update laneway.limits set max_concurrent = 1 where name in ('scarce', 'call');
insert into laneway.worker_lanes (name, job_types, max_slots, lease_seconds, poll_interval_ms)
values ('calm', '{limited,calling}', null, 2, 250),
       ('eager', '{limited_eager,calling_eager}', null, 2, 250);
"""
# Two each, so that one is left to take the lane's turn.
LANES = ("calm", "calm", "eager", "eager")
CALM, EAGER = ("limited", "calling"), ("limited_eager", "calling_eager")


async def play(stage: Stage) -> None:
    stage.app = "tests.crash.house:lw"
    stage.conn.execute(PREPARE)
    workers = [stage.start_worker(lanes=lane) for lane in LANES]
    await stage.ready(*workers)
    async with stage.client() as client:
        for number in range(stage.count(ROUNDS, 4)):
            await _fill(stage, client)
            urgent = [
                stage.job(job_type, {"priority": 10}, ms=MS)
                for job_type in EAGER
                for _ in range(FEW)
            ]
            ids = await stage.submit(client, *urgent)
            stage.history.add("met", kind="backlog", waiting=_waiting(stage))
            if number % 2:
                await _kill(stage, workers)
            await until(partial(_ended, stage, ids), 30, "the few have ended")
        await stage.drain(DRAIN_S)


async def _fill(stage: Stage, client: Laneway) -> None:
    """Puts as many jobs of the calm lane into the queue as are missing; they wait when it ends."""
    jobs: list[Job] = []
    for job_type in CALM:
        there = int(
            stage.ask("select count(*) from laneway.ready where job_type = %s", job_type)
        ) + int(stage.ask("select count(*) from laneway.lease where job_type = %s", job_type))
        jobs += [stage.job(job_type, ms=MS) for _ in range(BACKLOG - there)]
    if jobs:
        await stage.submit(client, *jobs)
    await until(
        lambda: stage.ask(
            "select count(distinct limit_name) = 2 from laneway.limit_turns where waits"
        ),
        30,
        "both limits are waited for",
        0.005,
    )


def _waiting(stage: Stage) -> int:
    return int(
        stage.ask(
            "select min(n) from (select count(*) as n from laneway.jobs_view"
            " where job_type = any (%s) and status in ('approved', 'running') group by job_type) x",
            list(CALM),
        )
        or 0
    )


async def _kill(stage: Stage, workers: list[WorkerProcess]) -> None:
    place = stage.random.randrange(len(workers))
    worker = workers[place]
    stage.kill(worker, worker.pid)
    worker.process.wait()
    workers[place] = stage.start_worker(lanes=LANES[place])
    await stage.ready(workers[place])


def _ended(stage: Stage, ids: list[str]) -> bool:
    return bool(
        stage.ask(
            "select count(*) = %s from laneway.outcome o join laneway.jobs j using (seq)"
            " where j.id = any (%s::uuid[])",
            len(ids),
            ids,
        )
    )


# What must hold -----------------------------------------------------------------------------------


def look(stage: Stage) -> None:
    result, history = stage.result, stage.history
    types: dict[str, str] = dict(
        stage.conn.execute("select id::text, job_type from laneway.jobs").fetchall()
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
        # Of one that was killed inside, the first time.
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
    done = sum(job.status == "completed" for job in stage.final.jobs.values())
    result.must("completed", f"{done}/{result.jobs}", held=done == result.jobs)
    left = stage.final.limits
    result.must("limits left in use", left, held=left == 0)
    result.figures.update(turns_most_before=most)
