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
from tests.engine.workshop import Workshop, until


class Held:
    """Handlers that are inside until they are let go."""

    def __init__(self, shop: Workshop) -> None:
        self.inside = 0
        self.go = asyncio.Event()

        @shop.lw.handler("job")
        async def job(ctx: Context) -> None:
            self.inside += 1
            await self.go.wait()


async def listening(shop: Workshop) -> Worker:
    worker = await shop.hire()
    await until(lambda: worker.heartbeat.is_ready)
    await until(lambda: worker.wakeups.is_listening)
    return worker


async def has_learned(worker: Worker) -> None:
    """Returns when it knows, and the claims that were under way then are over."""
    worker.registrar.wake()
    await until(lambda: worker.registrar.is_drained)
    await claims_nothing(worker)


async def claims_nothing(worker: Worker) -> None:
    for loop in worker.loops.values():
        assert await loop.run_once() is None


def heard(shop: Workshop) -> list[str]:
    return [note.payload for note in shop.conn.notifies(timeout=0)]


async def test_drained_worker_finishes_its_jobs_and_claims_none_until_resumed(
    shop: Workshop,
) -> None:
    held = Held(shop)
    worker = await listening(shop)
    first = await shop.lw.submit("job")
    await until(lambda: held.inside == 1)

    drained = await shop.lw.operate(workers.drain, worker.id, by="ann")
    assert (drained.drain_requested_by, drained.running) == ("ann", 1)
    await until(lambda: worker.registrar.is_drained)
    await has_learned(worker)
    second = await shop.lw.submit("job")
    held.go.set()
    await first.wait(60)
    await claims_nothing(worker)
    assert shop.status(second) == "approved"

    await shop.lw.operate(workers.resume, worker.id, by="ann")
    await second.wait(60)
    assert not worker.registrar.is_drained


async def test_other_workers_take_the_jobs_of_a_drained_worker(shop: Workshop) -> None:
    held = Held(shop)
    held.go.set()
    drained, other = await listening(shop), await listening(shop)
    await shop.lw.operate(workers.drain, drained.id, by="ann")
    await has_learned(drained)

    jobs = await shop.lw.submit_many([("job", {})] * 20)
    done = [await shop.ended(job) for job in jobs]
    assert {job.attempts[0].claimed_by for job in done} == {other.id}


async def test_drained_worker_wakes_others_for_delayed_jobs_that_are_due(
    shop: Workshop,
) -> None:
    Held(shop)
    worker = await listening(shop)
    await shop.lw.operate(workers.drain, worker.id, by="ann")
    await has_learned(worker)
    await shop.lw.submit("job", delay=3600)
    shop.do(f"listen {CHANNEL}")
    shop.do("update laneway.delayed set run_at = clock_timestamp()")
    worker.poller.wake()
    await until(lambda: wake_message({"job"}) in heard(shop))


async def test_worker_without_notifications_learns_of_its_drain(
    shop: Workshop,
) -> None:
    held = Held(shop)
    held.go.set()
    worker = await shop.hire_unlike({"listen": False})
    await until(lambda: worker.heartbeat.is_ready)
    await shop.lw.operate(workers.drain, worker.id, by="ann")
    await has_learned(worker)
    job = await shop.lw.submit("job")
    await claims_nothing(worker)
    assert shop.status(job) == "approved"

    await shop.lw.operate(workers.resume, worker.id, by="ann")
    worker.registrar.wake()
    await job.wait(60)


async def test_a_claim_under_way_when_the_worker_learns_of_it_stands(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(shop)
    worker = await listening(shop)
    (loop,) = worker.loops.values()
    claim = worker.databases.claim
    run = claim.run

    async def late(statement: Statement[Any]) -> Any:
        answer = await run(statement)
        if getattr(answer, "assignments", None):
            # The claim has committed; its answer arrives after the news.
            await shop.lw.operate(workers.drain, worker.id, by="ann")
            await until(lambda: worker.registrar.is_drained)
        return answer

    monkeypatch.setattr(claim, "run", late)
    await loop.run_once()  # a claim that was sent before is answered
    job = await shop.lw.submit("job")
    await until(lambda: held.inside == 1)
    assert worker.registrar.is_drained
    held.go.set()
    assert (await shop.ended(job)).status.value == "completed"
    assert await loop.run_once() is None


async def test_a_drained_worker_that_fell_silent_comes_back_drained(shop: Workshop) -> None:
    Held(shop)
    worker = await listening(shop)
    await shop.lw.operate(workers.drain, worker.id, by="ann")
    await until(lambda: worker.registrar.is_drained)
    silence = "update laneway.workers set seen_at = seen_at - interval '5 minutes'"
    shop.do(f"{silence}, stopped_at = seen_at")

    await worker.registrar.run_once()
    assert worker.registrar.is_drained
    assert (await workers.get(shop.lw.database, worker.id)).is_live

    # Drained while it was silent, it learns of that when it reports again.
    shop.do(silence)
    await shop.lw.operate(workers.resume, worker.id, by="ann")
    await worker.registrar.run_once()
    assert not worker.registrar.is_drained


async def test_worker_publishes_its_transport_and_memory(
    shop: Workshop,
) -> None:
    Held(shop)
    worker = await shop.hire()
    apart = await shop.hire_unlike({}, transport="database")
    live = {each.id: each for each in await _live(shop)}
    assert (live[worker.id].transport, live[apart.id].transport) == ("in_process", "database")
    shop.do("update laneway.workers set memory_bytes = 1")
    await worker.registrar.run_once()
    (row,) = [each for each in await _live(shop) if each.id == worker.id]
    held = resident_bytes()
    if held is None:
        assert row.memory_bytes is None
    else:
        assert row.memory_bytes is not None
        assert held / 2 < row.memory_bytes < held * 2


async def _live(shop: Workshop) -> list[WorkerRow]:
    return (await workers.overview(shop.lw.database)).live
