"""A job that was lost twice together with others runs apart: it may be the cause."""

from __future__ import annotations

import os
import tempfile

import pytest

from laneway import Context, JobHandle
from laneway.engine.process.loop_marker import MAX_MARKS, SIZE, LoopMarker
from tests.engine import isolated
from tests.engine.workshop import Workshop, until


async def suspect(shop: Workshop, job_type: str, losses: int = 2) -> JobHandle:
    """Submits a job with a past, before there is a worker."""
    job = await shop.lw.submit(job_type, max_retries=0)
    shop.do(
        "insert into laneway.suspects (seq, losses, lost_with) values (%s, %s, gen_random_uuid())",
        shop.seq(job),
        losses,
    )
    return job


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_suspect_runs_in_child_process(shop: Workshop, kind: str) -> None:
    job_type = f"suspect_{kind}"
    shop.lw.handlers.add(isolated.lw.handlers[job_type])
    job = await suspect(shop, job_type)
    other = await suspect(shop, job_type, losses=1)
    worker = await shop.hire()
    assert await job.wait(60) != os.getpid()
    assert await other.wait(60) == os.getpid()
    await until(lambda: worker.capacity.in_use == 0)


async def test_suspect_that_kills_its_process_is_charged_alone(shop: Workshop) -> None:
    for job_type in ("suspect_culprit", "suspect_async"):
        shop.lw.handlers.add(isolated.lw.handlers[job_type])
    culprit = await suspect(shop, "suspect_culprit")
    others = [await suspect(shop, "suspect_async") for _ in range(3)]
    await shop.hire()
    ended = await shop.ended(culprit)
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("failed", "ChildDied")
    for other in others:
        assert (await shop.ended(other)).status == "completed"


async def test_suspect_that_no_child_finds_runs_in_the_worker(shop: Workshop) -> None:
    @shop.lw.handler("local")
    async def local(ctx: Context) -> int:
        return os.getpid()

    job = await suspect(shop, "local")
    await shop.hire()
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
