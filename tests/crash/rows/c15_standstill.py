"""C15: handlers that run without progress, where their type requires progress.

The shortest stale_timeout is a minute. The test does not wait for it: it moves the time of the
last progress back, as if the minute had passed.
"""

from __future__ import annotations

import contextlib

from tests.crash.processes import HEARTBEAT_S
from tests.crash.row_run import RowRun, Stuck, wait_until

JOBS = 10
TO_SAY_SO_S = 0.35


async def inject(run: RowRun) -> None:
    worker = run.start_worker()
    await run.ready(worker)
    async with run.client() as client:
        jobs = [run.job("standstill", moves_first=bool(i % 2)) for i in range(JOBS)]
        ids = await run.submit(client, *jobs)
        moved = JOBS // 2
        await wait_until(
            lambda: (
                len(run.handlers().of("start")) == JOBS
                and run.ask("select count(last_progress_at) from laneway.lease") == moved
            ),
            10,
            "all run, half have moved",
        )
        run.conn.execute(
            "update laneway.lease set claimed_at = claimed_at - interval '2 minutes',"
            " last_progress_at = last_progress_at - interval '2 minutes'"
        )
        for _ in ids:
            run.fault(kind="standstill")
        await run.drain()
        with contextlib.suppress(Stuck):
            await wait_until(lambda: _stopped(run) == JOBS, 3, "the first attempts stop")


def _stopped(run: RowRun) -> int:
    return sum(event.attempt == 1 for event in run.handlers().of("stop"))


def check(run: RowRun) -> None:
    result, history = run.result, run.history
    kept = [e for e in history.of("kept") if e.more["outcome"] == "stalled"]
    jobs = {event.job for event in kept}
    result.must(
        "taken back exactly once", f"{len(kept)} of {JOBS}", held=len(kept) == len(jobs) == JOBS
    )
    charged = sum(
        job.status == "completed" and job.attempt == 2 and job.retries == 1
        for job in run.final.jobs.values()
    )
    result.must("charged, and done by the second attempt", charged, held=charged == JOBS)
    notified = {event.job for event in history.of("notified")}
    result.must("late writes refused", f"{len(notified)} of {JOBS}", held=len(notified) == JOBS)
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
