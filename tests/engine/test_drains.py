"""A drained worker: it claims nothing more, and its jobs finish."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway import Context
from laneway.control import workers
from laneway.domain.overview import WorkerRow
from laneway.engine.process.memory import resident_bytes
from laneway.engine.worker import Worker
from laneway.store.notify import CHANNEL, wake_message
from laneway.store.statement import Statement
from tests.support.worker_harness import WorkerHarness, wait_until


class Held:
    """Handlers that are inside until they are let go."""

    def __init__(self, harness: WorkerHarness) -> None:
        self.inside = 0
        self.go = asyncio.Event()

        @harness.lw.handler("job")
        async def job(ctx: Context) -> None:
            self.inside += 1
            await self.go.wait()


async def listening(harness: WorkerHarness) -> Worker:
    worker = await harness.start_worker()
    await wait_until(lambda: worker.heartbeat.is_ready)
    await wait_until(lambda: worker.wakeups.is_listening)
    return worker


async def has_learned(worker: Worker) -> None:
    """Returns when it knows, and the claims that were under way then are over."""
    worker.registrar.wake()
    await wait_until(lambda: worker.registrar.is_drained)
    await claims_nothing(worker)


async def claims_nothing(worker: Worker) -> None:
    for loop in worker.loops.values():
        assert await loop.run_once() is None


def heard(harness: WorkerHarness) -> list[str]:
    return [note.payload for note in harness.conn.notifies(timeout=0)]


async def test_drained_worker_finishes_its_jobs_and_claims_none_until_resumed(
    harness: WorkerHarness,
) -> None:
    held = Held(harness)
    worker = await listening(harness)
    first = await harness.lw.submit("job")
    await wait_until(lambda: held.inside == 1)

    drained = await harness.lw.operate(workers.drain, worker.id, by="ann")
    assert (drained.drain_requested_by, drained.running) == ("ann", 1)
    await wait_until(lambda: worker.registrar.is_drained)
    await has_learned(worker)
    second = await harness.lw.submit("job")
    held.go.set()
    await first.wait(60)
    await claims_nothing(worker)
    assert harness.status(second) == "approved"

    await harness.lw.operate(workers.resume, worker.id, by="ann")
    await second.wait(60)
    assert not worker.registrar.is_drained


async def test_other_workers_take_the_jobs_of_a_drained_worker(harness: WorkerHarness) -> None:
    held = Held(harness)
    held.go.set()
    drained, other = await listening(harness), await listening(harness)
    await harness.lw.operate(workers.drain, drained.id, by="ann")
    await has_learned(drained)

    jobs = await harness.lw.submit_many([("job", {})] * 20)
    done = [await harness.ended(job) for job in jobs]
    assert {job.attempts[0].claimed_by for job in done} == {other.id}


async def test_drained_worker_wakes_others_for_delayed_jobs_that_are_due(
    harness: WorkerHarness,
) -> None:
    Held(harness)
    worker = await listening(harness)
    await harness.lw.operate(workers.drain, worker.id, by="ann")
    await has_learned(worker)
    await harness.lw.submit("job", delay=3600)
    harness.do(f"listen {CHANNEL}")
    harness.do("update laneway.delayed set run_at = clock_timestamp()")
    worker.poller.wake()
    await wait_until(lambda: wake_message({"job"}) in heard(harness))


async def test_worker_without_notifications_learns_of_its_drain(
    harness: WorkerHarness,
) -> None:
    held = Held(harness)
    held.go.set()
    worker = await harness.start_worker_with({"listen": False})
    await wait_until(lambda: worker.heartbeat.is_ready)
    await harness.lw.operate(workers.drain, worker.id, by="ann")
    await has_learned(worker)
    job = await harness.lw.submit("job")
    await claims_nothing(worker)
    assert harness.status(job) == "approved"

    await harness.lw.operate(workers.resume, worker.id, by="ann")
    worker.registrar.wake()
    await job.wait(60)


async def test_claim_under_way_when_the_worker_learns_of_it_stands(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(harness)
    worker = await listening(harness)
    (loop,) = worker.loops.values()
    claim = worker.databases.claim
    run = claim.run

    async def late(statement: Statement[Any]) -> Any:
        answer = await run(statement)
        if getattr(answer, "assignments", None):
            # The claim has committed; its answer arrives after the news.
            await harness.lw.operate(workers.drain, worker.id, by="ann")
            await wait_until(lambda: worker.registrar.is_drained)
        return answer

    monkeypatch.setattr(claim, "run", late)
    await loop.run_once()  # a claim that was sent before is answered
    job = await harness.lw.submit("job")
    await wait_until(lambda: held.inside == 1)
    assert worker.registrar.is_drained
    held.go.set()
    assert (await harness.ended(job)).status.value == "completed"
    assert await loop.run_once() is None


async def reported(harness: WorkerHarness, worker: Worker) -> None:
    """Waits until the worker has reported that it lives."""
    harness.do("update laneway.workers set memory_bytes = 1 where id = %s", worker.id)
    worker.registrar.wake()
    memory = "select coalesce(memory_bytes, 0) <> 1 from laneway.workers where id = %s"
    await wait_until(lambda: harness.one(memory, worker.id))


async def test_drained_worker_that_fell_silent_comes_back_drained(harness: WorkerHarness) -> None:
    Held(harness)
    worker = await listening(harness)
    await harness.lw.operate(workers.drain, worker.id, by="ann")
    await wait_until(lambda: worker.registrar.is_drained)
    silence = "update laneway.workers set seen_at = seen_at - interval '5 minutes'"
    harness.do(f"{silence}, stopped_at = seen_at")

    await reported(harness, worker)
    assert worker.registrar.is_drained
    assert (await workers.get(harness.lw.database, worker.id)).is_live

    # Drained while it was silent, it learns of that when it reports again.
    harness.do(silence)
    await harness.lw.operate(workers.resume, worker.id, by="ann")
    await wait_until(lambda: not worker.registrar.is_drained)
    await reported(harness, worker)


async def test_worker_publishes_its_transport_and_memory(
    harness: WorkerHarness,
) -> None:
    Held(harness)
    worker = await harness.start_worker()
    apart = await harness.start_worker_with({}, transport="database")
    live = {each.id: each for each in await _live(harness)}
    assert (live[worker.id].transport, live[apart.id].transport) == ("in_process", "database")
    await reported(harness, worker)
    (row,) = [each for each in await _live(harness) if each.id == worker.id]
    held = resident_bytes()
    if held is None:
        assert row.memory_bytes is None
    else:
        assert row.memory_bytes is not None
        assert held / 2 < row.memory_bytes < held * 2


async def _live(harness: WorkerHarness) -> list[WorkerRow]:
    return (await workers.overview(harness.lw.database)).live
