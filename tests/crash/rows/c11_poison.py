"""C11: handlers that kill, hang or exhaust their process, next to 200 normal jobs."""

from __future__ import annotations

import asyncio

from laneway.testing.history import FinalJob
from tests.crash.row_run import RowRun

KINDS = ("exit", "segfault", "sigkill", "memory")
NEIGHBOURS = 200
STARTS = 3
# Each dies three times; a supervisor restarts its child after a growing pause.
WITHIN_S = 40.0


async def inject(run: RowRun) -> None:
    run.worker_settings = {"LANEWAY_CHILDREN": "3", "LANEWAY_CANCEL_GRACE": "0.3"}
    plain = run.start_worker(lanes="default,isolated")
    supervised = [
        run.start_worker(lanes=lane, is_supervised=True)
        for lane in ("fragile_exit", "fragile_kill")
    ]
    await run.ready(plain, *supervised)
    async with run.client() as client:
        poison = [run.job("poison", kind=kind) for kind in KINDS]
        suicides = [run.job("suicide_exit"), run.job("suicide_kill")]
        await run.submit(client, run.job("poison_gil"), *poison, *suicides)
        for _ in range(run.count(NEIGHBOURS) // 10):
            await run.submit(client, *(run.job("quick", ms=50) for _ in range(8)))
            await run.submit(client, run.job("isolated", ms=20), run.job("blocking", ms=50))
            await asyncio.sleep(0.1)
        await run.drain_all(WITHIN_S)
    run.result.must("the worker beside them lives", plain.is_alive, held=plain.is_alive)


def check(run: RowRun) -> None:
    starts: dict[str | None, int] = {}
    for event in run.history.of("start"):
        starts[event.job] = starts.get(event.job, 0) + 1
    payloads: dict[str, str] = dict(
        run.conn.execute(
            "select id::text, concat_ws(' ', job_type, payload ->> 'kind') from laneway.jobs"
        ).fetchall()
    )
    for job in run.final.jobs.values():
        name = payloads[job.job]
        if name.startswith(("poison", "suicide")):
            run.result.faults += starts.get(job.job, 0)
            _judge(run, name, job, starts.get(job.job, 0))
    neighbours = [
        job
        for job in run.final.jobs.values()
        if not payloads[job.job].startswith(("poison", "suicide"))
    ]
    done = sum(job.status == "completed" for job in neighbours)
    once = sum(job.attempt == 1 for job in neighbours)
    run.result.must(
        "neighbours completed, at their first attempt",
        f"{done} and {once} of {len(neighbours)}",
        held=done == once == len(neighbours),
    )


def _judge(run: RowRun, name: str, job: FinalJob, starts: int) -> None:
    error = job.error or {}
    reason = f"{error.get('type')}: {str(error.get('message'))[:60]}"
    is_right = job.status == "failed" and starts == STARTS == job.attempt and job.retries == 2
    if name.startswith("suicide"):
        is_right = is_right and "worker lost" in str(error.get("message"))
    run.result.must(
        f"{name}: failed after exactly {STARTS} starts",
        f"{job.status} after {starts} ({reason})",
        held=is_right,
    )
