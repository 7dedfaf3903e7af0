"""C15: handlers that live and do not move, where their type asks for progress.

The shortest stale_timeout is a minute. Nobody waits for it: the test moves the time of the last
progress back, as if the minute had passed.
"""

from __future__ import annotations

import contextlib

from tests.crash.processes import HEARTBEAT_S
from tests.crash.stage import Stage, Stuck, until

JOBS = 10
TO_SAY_SO_S = 0.35


async def play(stage: Stage) -> None:
    worker = stage.start_worker()
    await stage.ready(worker)
    async with stage.client() as client:
        jobs = [stage.job("standstill", moves_first=bool(i % 2)) for i in range(JOBS)]
        ids = await stage.submit(client, *jobs)
        moved = JOBS // 2
        await until(
            lambda: (
                len(stage.handlers().of("start")) == JOBS
                and stage.ask("select count(last_progress_at) from laneway.lease") == moved
            ),
            10,
            "all run, half have moved",
        )
        stage.conn.execute(
            "update laneway.lease set claimed_at = claimed_at - interval '2 minutes',"
            " last_progress_at = last_progress_at - interval '2 minutes'"
        )
        for _ in ids:
            stage.fault(kind="standstill")
        await stage.drain()
        with contextlib.suppress(Stuck):
            await until(lambda: _stopped(stage) == JOBS, 3, "the first attempts stop")


def _stopped(stage: Stage) -> int:
    return sum(event.attempt == 1 for event in stage.handlers().of("stop"))


def look(stage: Stage) -> None:
    result, history = stage.result, stage.history
    kept = [e for e in history.of("kept") if e.more["outcome"] == "stalled"]
    jobs = {event.job for event in kept}
    result.must(
        "taken back exactly once", f"{len(kept)} of {JOBS}", held=len(kept) == len(jobs) == JOBS
    )
    charged = sum(
        job.status == "completed" and job.attempt == 2 and job.retries == 1
        for job in stage.final.jobs.values()
    )
    result.must("charged, and done by the second attempt", charged, held=charged == JOBS)
    told = {event.job for event in history.of("told")}
    result.must("late writes refused", f"{len(told)} of {JOBS}", held=len(told) == JOBS)
    ended = {event.job: event.at for event in kept}
    stops = [
        event.at - ended[event.job]
        for event in history.of("stop")
        if event.attempt == 1 and event.job in ended
    ]
    late = max(stops, default=99.0)
    result.must(
        "handlers stopped ≤ 1 heartbeat later, and the time to say so",
        f"{late:.2f} s ({len(stops)} of {JOBS})",
        held=len(stops) == JOBS and late <= HEARTBEAT_S + TO_SAY_SO_S,
    )
