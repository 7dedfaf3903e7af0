"""A job that was lost twice together with others runs apart: it may be the cause."""

from __future__ import annotations

import os
import tempfile

import pytest

from laneway import Context, JobHandle
from laneway.engine.process.loop_marker import MAX_MARKS, SIZE, LoopMarker
from tests.engine import isolation_handlers
from tests.support.worker_harness import WorkerHarness, wait_until


async def suspect(harness: WorkerHarness, job_type: str, losses: int = 2) -> JobHandle:
    """Submits a job with an attempt and losses in the past, before there is a worker."""
    job = await harness.lw.submit(job_type, max_retries=0)
    harness.do("update laneway.ready set attempt = 1 where seq = %s", harness.seq(job))
    harness.do(
        "insert into laneway.suspects (seq, losses, lost_with) values (%s, %s, gen_random_uuid())",
        harness.seq(job),
        losses,
    )
    return job


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_suspect_runs_in_child_process(harness: WorkerHarness, kind: str) -> None:
    job_type = f"suspect_{kind}"
    harness.lw.handlers.add(isolation_handlers.lw.handlers[job_type])
    job = await suspect(harness, job_type)
    other = await suspect(harness, job_type, losses=1)
    worker = await harness.start_worker()
    assert await job.wait(60) != os.getpid()
    assert await other.wait(60) == os.getpid()
    await wait_until(lambda: worker.capacity.in_use == 0)


async def test_suspect_that_kills_its_process_is_charged_alone(harness: WorkerHarness) -> None:
    for job_type in ("suspect_culprit", "suspect_async"):
        harness.lw.handlers.add(isolation_handlers.lw.handlers[job_type])
    culprit = await suspect(harness, "suspect_culprit")
    others = [await suspect(harness, "suspect_async") for _ in range(3)]
    await harness.start_worker()
    ended = await harness.ended(culprit)
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("failed", "ChildDied")
    for other in others:
        assert (await harness.ended(other)).status == "completed"


async def test_suspect_that_no_child_finds_runs_in_the_worker(harness: WorkerHarness) -> None:
    @harness.lw.handler("local")
    async def local(ctx: Context) -> int:
        return os.getpid()

    job = await suspect(harness, "local")
    await harness.start_worker()
    assert await job.wait(60) == os.getpid()


def test_marker_knows_whose_handlers_had_begun() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"\0" * SIZE)
        file.flush()
        writer, reader = LoopMarker(file.fileno()), LoopMarker(file.fileno())
        places = [writer.begin(seq) for seq in (7, 8, 9)]
        assert sorted(reader.begun() or []) == [7, 8, 9]
        writer.end(places[1])
        assert sorted(reader.begun() or []) == [7, 9]
        more = [writer.begin(seq) for seq in range(10, 10 + MAX_MARKS)]
        assert reader.begun() is None
        for place in more:
            writer.end(place)
        assert sorted(reader.begun() or []) == [7, 9]
        writer.close()
        reader.close()
