"""C11: handlers that kill, hang or exhaust their process, beside 200 that only want to be done."""

from __future__ import annotations

import asyncio

from laneway.testing.history import FinalJob
from tests.crash.stage import Stage

KINDS = ("exit", "segfault", "sigkill", "memory")
NEIGHBOURS = 200
STARTS = 3
# Each dies three times; a supervisor starts its child again after a growing pause.
WITHIN_S = 40.0


async def play(stage: Stage) -> None:
    stage.worker_settings = {"LANEWAY_CHILDREN": "3", "LANEWAY_CANCEL_GRACE": "0.3"}
    plain = stage.start_worker(lanes="default,isolated")
    supervised = [
        stage.start_worker(lanes=lane, is_supervised=True)
        for lane in ("fragile_exit", "fragile_kill")
    ]
    await stage.ready(plain, *supervised)
    async with stage.client() as client:
        poison = [stage.job("poison", kind=kind) for kind in KINDS]
        suicides = [stage.job("suicide_exit"), stage.job("suicide_kill")]
        await stage.submit(client, stage.job("poison_gil"), *poison, *suicides)
        for _ in range(stage.count(NEIGHBOURS) // 10):
            await stage.submit(client, *(stage.job("quick", ms=50) for _ in range(8)))
            await stage.submit(client, stage.job("isolated", ms=20), stage.job("blocking", ms=50))
            await asyncio.sleep(0.1)
        await stage.drain_all(WITHIN_S)
    stage.result.must("the worker beside them lives", plain.is_alive, held=plain.is_alive)


def look(stage: Stage) -> None:
    starts: dict[str | None, int] = {}
    for event in stage.history.of("start"):
        starts[event.job] = starts.get(event.job, 0) + 1
    payloads: dict[str, str] = dict(
        stage.conn.execute(
            "select id::text, concat_ws(' ', job_type, payload ->> 'kind') from laneway.jobs"
        ).fetchall()
    )
    for job in stage.final.jobs.values():
        name = payloads[job.job]
        if name.startswith(("poison", "suicide")):
            stage.result.faults += starts.get(job.job, 0)
            _judge(stage, name, job, starts.get(job.job, 0))
    neighbours = [
        job
        for job in stage.final.jobs.values()
        if not payloads[job.job].startswith(("poison", "suicide"))
    ]
    done = sum(job.status == "completed" for job in neighbours)
    once = sum(job.attempt == 1 for job in neighbours)
    stage.result.must(
        "neighbours completed, at their first attempt",
        f"{done} and {once} of {len(neighbours)}",
        held=done == once == len(neighbours),
    )


def _judge(stage: Stage, name: str, job: FinalJob, starts: int) -> None:
    error = job.error or {}
    reason = f"{error.get('type')}: {str(error.get('message'))[:60]}"
    is_right = job.status == "failed" and starts == STARTS == job.attempt and job.retries == 2
    if name.startswith("suicide"):
        is_right = is_right and "worker lost" in str(error.get("message"))
    stage.result.must(
        f"{name}: failed after exactly {STARTS} starts",
        f"{job.status} after {starts} ({reason})",
        held=is_right,
    )
