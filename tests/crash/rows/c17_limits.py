"""C17: workers are killed while their jobs hold limits, for a run or for a call, and keys."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter

from laneway import Laneway
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import Job, RowRun, wait_until

FAULTS, JOBS = 16, 1200
EVERY_S = 0.8
WORKERS = 3
KEYS = 10
LONG_MS = 300
# Killed holders keep limits and keys until their lease lapses; other jobs wait.
DRAIN_S = 25.0
# The holding of a worker when it is killed.
HELD = {
    "a limit for a run": "l.limits && '{scarce,dear}'",
    "a limit for a call": "l.limits && '{call}'",
    "a key": "l.concurrency_key is not null",
    "a key and a limit": "l.concurrency_key is not null and l.limits && '{dear}'",
}


# Leaked rows must stay visible: this row has no cancels that need the sweep.
NO_SWEEP = """
create or replace function laneway.sweep_keys(p_limit integer default 200) returns integer
language sql as 'select 0'
"""


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.policy_app:lw"
    run.conn.execute(NO_SWEEP)
    workers = [run.start_worker() for _ in range(WORKERS)]
    await run.ready(*workers)
    kills = run.count(FAULTS, len(HELD))
    held = itertools.cycle(HELD)
    async with run.client() as client:
        for _ in range(kills):
            await _feed(run, client, math.ceil(run.count(JOBS, 120) / kills))
            await asyncio.sleep(EVERY_S)
            await _kill_holder(run, client, workers, next(held))
        await run.drain(DRAIN_S)


async def _feed(run: RowRun, client: Laneway, count: int) -> None:
    await run.submit(client, *(_job(run) for _ in range(count)))


def _job(run: RowRun) -> Job:
    rand = run.load_random
    pick = rand.random()
    ms = rand.randint(5, 40)
    if pick < 0.15:
        return run.job("limited", ms=ms)
    if pick < 0.25:
        return run.job("limited_twice", ms=ms)
    if pick < 0.35:
        return run.job("calling", ms=ms)
    if pick < 0.45:
        return run.job("calling_plainly", ms=ms)
    key = f"key-{rand.randrange(KEYS)}"
    if pick < 0.9:
        return run.job("keyed", {"concurrency_key": key}, key=key, ms=ms // 3)
    return run.job("keyed_apart", {"concurrency_key": key}, key=key, ms=ms)


def _long(run: RowRun, held: str) -> Job:
    """A job with this holding for a while."""
    key = f"key-{run.load_random.randrange(KEYS)}"
    if held == "a limit for a run":
        return run.job("limited", ms=LONG_MS)
    if held == "a limit for a call":
        return run.job("calling", ms=LONG_MS)
    job_type = "keyed" if held == "a key" else "keyed_apart"
    return run.job(job_type, {"concurrency_key": key}, key=key, ms=LONG_MS)


async def _kill_holder(
    run: RowRun, client: Laneway, workers: list[WorkerProcess], held: str
) -> None:
    """Kill a worker with this holding; check again afterwards, because it may have released it."""
    while True:
        await run.submit(client, *(_long(run, held) for _ in range(3)))
        found: list[int] = []

        def look(found: list[int] = found) -> bool:
            found[:] = [i for i, worker in enumerate(workers) if _holds(run, worker, held)]
            return bool(found)

        await wait_until(look, 20, f"a worker holds {held}", 0.005)
        worker = workers[run.random.choice(found)]
        run.kill(worker, worker.pid)
        worker.process.wait()
        is_hit = _holds(run, worker, held)
        place = workers.index(worker)
        workers[place] = run.start_worker()
        if is_hit:
            run.history.add("met", kind=held)
            return
        await run.ready(workers[place])


def _holds(run: RowRun, worker: WorkerProcess, held: str) -> bool:
    return bool(
        run.ask(
            "select exists (select from laneway.lease l"
            " join laneway.workers w on w.id = l.worker_id"
            f" where w.pid = %s and {HELD[held]})",
            worker.pid,
        )
    )


# What must hold -----------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result, history = run.result, run.history
    met = Counter(event.more["kind"] for event in history.of("met"))
    result.must(
        "killed with a limit, a call, a key in hand", dict(met), held=met.keys() == HELD.keys()
    )
    snapshots = history.of("snapshot")
    ceilings = {"scarce": 3, "dear": 2, "call": 2, **{f"key-{i}": 1 for i in range(KEYS)}}
    over = 0
    for name, ceiling in ceilings.items():
        seen = max((event.more["held"].get(name, 0) for event in snapshots), default=0)
        most = _most_at_once(run, name)
        over += max(seen, most) > ceiling
        if not name.startswith("key"):
            result.must(
                f"holders of {name} ≤ {ceiling}, by leases and by handlers",
                f"{seen}, {most}",
                held=max(seen, most) <= ceiling and seen > 0,
            )
        elif most > ceiling:
            result.must(f"holders of {name} ≤ 1, by handlers", most, held=False)
    waited = sum(event.more["held"].get("scarce", 0) == 3 for event in snapshots)
    result.must("looks that found a limit used up", waited, held=waited > 0)
    left = run.final.limits + run.final.keys
    result.must("limits and keys left in use", left, held=left == 0)
    done = sum(job.status == "completed" for job in run.final.jobs.values())
    result.must("completed", f"{done}/{result.jobs}", held=done == result.jobs)
    result.figures.update(limit_kills=result.faults, limits_exceeded=over, limits_leaked=left)


def _most_at_once(run: RowRun, name: str) -> int:
    """The most handlers that held this at one time, by their own records.

    A handler that was killed, or whose lease has ended, holds nothing.
    """
    history = run.history
    died = {death.more["pid"]: death.at for death in history.of("death")}
    ended = {(event.job, event.attempt): event.at for event in history.of("end")}
    let_go = {
        (event.job, event.attempt): event.at
        for event in history.of("let_go")
        if name in event.more["names"]
    }
    steps: list[tuple[float, int]] = []
    for event in history.of("hold"):
        if name in event.more["names"]:
            attempt = event.job, event.attempt
            until_at = min(
                let_go.get(attempt, math.inf),
                ended.get(attempt, math.inf),
                died.get(event.more["pid"], math.inf),
            )
            if until_at > event.at:
                steps += [(event.at, 1), (until_at, -1)]
    return max(itertools.accumulate(step for _, step in sorted(steps)), default=0)
