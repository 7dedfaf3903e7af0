"""C17: workers are killed while their jobs hold limits, for a run or for a call, and keys."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter

from laneway import Laneway
from tests.crash.processes import WorkerProcess
from tests.crash.stage import Job, Stage, until

FAULTS, JOBS = 16, 1200
EVERY_S = 0.8
WORKERS = 3
KEYS = 10
LONG_MS = 300
# Killed holders keep what they hold until their lease has lapsed; the others wait in line for it.
DRAIN_S = 25.0
# What a worker holds when it is killed.
HELD = {
    "a limit for a run": "l.limits && '{scarce,dear}'",
    "a limit for a call": "l.limits && '{call}'",
    "a key": "l.concurrency_key is not null",
    "a key and a limit": "l.concurrency_key is not null and l.limits && '{dear}'",
}


# What is left behind stays: here is nobody whose cancelled cancel the sweep would have to mend.
NO_SWEEP = """
create or replace function laneway.sweep_keys(p_limit integer default 200) returns integer
language sql as 'select 0'
"""


async def play(stage: Stage) -> None:
    stage.app = "tests.crash.house:lw"
    stage.conn.execute(NO_SWEEP)
    workers = [stage.start_worker() for _ in range(WORKERS)]
    await stage.ready(*workers)
    kills = stage.count(FAULTS, len(HELD))
    held = itertools.cycle(HELD)
    async with stage.client() as client:
        for _ in range(kills):
            await _feed(stage, client, math.ceil(stage.count(JOBS, 120) / kills))
            await asyncio.sleep(EVERY_S)
            await _kill_holder(stage, client, workers, next(held))
        await stage.drain(DRAIN_S)


async def _feed(stage: Stage, client: Laneway, count: int) -> None:
    await stage.submit(client, *(_job(stage) for _ in range(count)))


def _job(stage: Stage) -> Job:
    rand = stage.load_random
    pick = rand.random()
    ms = rand.randint(5, 40)
    if pick < 0.15:
        return stage.job("limited", ms=ms)
    if pick < 0.25:
        return stage.job("limited_twice", ms=ms)
    if pick < 0.35:
        return stage.job("calling", ms=ms)
    if pick < 0.45:
        return stage.job("calling_plainly", ms=ms)
    key = f"key-{rand.randrange(KEYS)}"
    if pick < 0.9:
        return stage.job("keyed", {"concurrency_key": key}, key=key, ms=ms // 3)
    return stage.job("keyed_apart", {"concurrency_key": key}, key=key, ms=ms)


def _long(stage: Stage, held: str) -> Job:
    """A job that holds this for a while."""
    key = f"key-{stage.load_random.randrange(KEYS)}"
    if held == "a limit for a run":
        return stage.job("limited", ms=LONG_MS)
    if held == "a limit for a call":
        return stage.job("calling", ms=LONG_MS)
    job_type = "keyed" if held == "a key" else "keyed_apart"
    return stage.job(job_type, {"concurrency_key": key}, key=key, ms=LONG_MS)


async def _kill_holder(
    stage: Stage, client: Laneway, workers: list[WorkerProcess], held: str
) -> None:
    """Kills a worker that holds this; looks again when it is dead, for it may have let go."""
    while True:
        await stage.submit(client, *(_long(stage, held) for _ in range(3)))
        found: list[int] = []

        def look(found: list[int] = found) -> bool:
            found[:] = [i for i, worker in enumerate(workers) if _holds(stage, worker, held)]
            return bool(found)

        await until(look, 20, f"somebody holds {held}", 0.005)
        worker = workers[stage.random.choice(found)]
        stage.kill(worker, worker.pid)
        worker.process.wait()
        is_hit = _holds(stage, worker, held)
        place = workers.index(worker)
        workers[place] = stage.start_worker()
        if is_hit:
            stage.history.add("met", kind=held)
            return
        await stage.ready(workers[place])


def _holds(stage: Stage, worker: WorkerProcess, held: str) -> bool:
    return bool(
        stage.ask(
            "select exists (select from laneway.lease l"
            " join laneway.workers w on w.id = l.worker_id"
            f" where w.pid = %s and {HELD[held]})",
            worker.pid,
        )
    )


# What must hold -----------------------------------------------------------------------------------


def look(stage: Stage) -> None:
    result, history = stage.result, stage.history
    met = Counter(event.more["kind"] for event in history.of("met"))
    result.must(
        "killed with a limit, a call, a key in hand", dict(met), held=met.keys() == HELD.keys()
    )
    snapshots = history.of("snapshot")
    ceilings = {"scarce": 3, "dear": 2, "call": 2, **{f"key-{i}": 1 for i in range(KEYS)}}
    over = 0
    for name, ceiling in ceilings.items():
        seen = max((event.more["held"].get(name, 0) for event in snapshots), default=0)
        most = _most_at_once(stage, name)
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
    left = stage.final.limits + stage.final.keys
    result.must("limits and keys left in use", left, held=left == 0)
    done = sum(job.status == "completed" for job in stage.final.jobs.values())
    result.must("completed", f"{done}/{result.jobs}", held=done == result.jobs)
    result.figures.update(limit_kills=result.faults, limits_exceeded=over, limits_leaked=left)


def _most_at_once(stage: Stage, name: str) -> int:
    """The most handlers that said at one time that they hold this.

    One that was killed, or whose lease has ended, holds nothing any more, whatever it said last.
    """
    history = stage.history
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
