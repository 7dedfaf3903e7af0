"""Workers with many quick jobs, which they claim ahead: the same laws hold as for all jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from laneway import Context, JobHandle
from laneway.engine.claim.claim_ahead import ENOUGH
from tests.engine import isolation_handlers
from tests.support.worker_harness import WorkerHarness, wait_until

CONCURRENCY = 100  # the default, not set by the harness


class QuickHandlers:
    """Handlers that end at once while `gate` is open, and the jobs that began."""

    def __init__(self, harness: WorkerHarness, *job_types: str, lane: str | None = None) -> None:
        self.harness = harness
        self.gate = asyncio.Event()
        self.gate.set()
        self.began: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        for job_type in job_types or ("quick",):
            harness.lw.handler(job_type, lane=lane)(self._handler)

    async def _handler(self, ctx: Context) -> None:
        self.began[str(ctx.job_id)] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if not self.gate.is_set():
                await self.gate.wait()
        finally:
            self.at_once -= 1

    async def warm(self, job_type: str = "quick") -> None:
        """Run so many quick jobs that the worker claims ahead."""
        await submit(self.harness, 2 * ENOUGH, job_type)
        await self.harness_is_idle()

    async def harness_is_idle(self) -> None:
        left = "select count(*) from laneway.jobs_view where finished_at is null"
        await wait_until(lambda: self.harness.one(left) == 0)


async def submit(harness: WorkerHarness, count: int, job_type: str = "quick") -> list[JobHandle]:
    made: list[JobHandle] = []
    for start in range(0, count, 1000):
        part: list[tuple[str, dict[str, object]]] = [
            (job_type, {}) for _ in range(min(1000, count - start))
        ]
        made += await harness.lw.submit_many(part)
    return made


def leases(harness: WorkerHarness) -> int:
    return int(harness.one("select count(*) from laneway.lease"))


async def test_all_quick_jobs_run_once_and_never_more_than_concurrency(
    harness: WorkerHarness,
) -> None:
    quick = QuickHandlers(harness)
    await harness.start_worker()
    await submit(harness, 5000)
    await quick.harness_is_idle()
    assert len(quick.began) == 5000
    assert set(quick.began.values()) == {1}
    assert quick.most_at_once <= CONCURRENCY
    assert harness.one("select max(retries) from laneway.outcome") == 0
    assert harness.holds_nothing()


async def test_jobs_that_became_slow_are_not_held_from_other_workers(
    harness: WorkerHarness,
) -> None:
    quick = QuickHandlers(harness)
    first = await harness.start_worker()
    await quick.warm()
    quick.gate.clear()
    jobs = await submit(harness, 3 * CONCURRENCY)
    # Nothing stays claimed whose handler was not called.
    await wait_until(lambda: leases(harness) == quick.at_once == CONCURRENCY)
    assert first.ahead.held == 0
    second = await harness.start_worker()
    await wait_until(lambda: leases(harness) == quick.at_once == 2 * CONCURRENCY)
    assert len(second.executor.active) == CONCURRENCY
    quick.gate.set()
    await quick.harness_is_idle()
    ids = [str(job.id) for job in jobs]
    assert all(quick.began[one] == 1 for one in ids), "what went back had not begun"
    assert harness.one("select max(retries) from laneway.outcome") == 0


async def test_slow_job_among_quick_ones_delays_none(harness: WorkerHarness) -> None:
    quick, go = QuickHandlers(harness), asyncio.Event()

    @harness.lw.handler("slow")
    async def slow(ctx: Context) -> None:
        await go.wait()

    await harness.start_worker()
    await quick.warm()
    held_up = await harness.lw.submit("slow")
    await submit(harness, 3000)
    await wait_until(lambda: len(quick.began) == 3000 + 2 * ENOUGH)
    assert harness.status(held_up) == "running"
    go.set()
    await quick.harness_is_idle()


async def test_other_lane_starts_its_job_while_quick_jobs_keep_coming(
    harness: WorkerHarness,
) -> None:
    quick = QuickHandlers(harness)
    QuickHandlers(harness, "other", lane="second")
    await harness.start_worker()
    await quick.warm()
    harness.do("update laneway.control set paused = true")
    await submit(harness, 10_000)
    job = await harness.lw.submit("other")
    harness.do("update laneway.control set paused = false")
    await quick.harness_is_idle()
    later = harness.one(
        "select count(*) from laneway.outcome q join laneway.outcome o on o.seq = %s"
        " where q.job_type = 'quick' and q.finished_at > o.finished_at",
        harness.seq(job),
    )
    assert later > 1000


async def test_stopped_worker_returns_jobs_claimed_ahead_without_charge(
    harness: WorkerHarness,
) -> None:
    quick = QuickHandlers(harness)
    worker = await harness.start_worker()
    await quick.warm()
    jobs = await submit(harness, 5000)
    await wait_until(lambda: len(quick.began) > 3 * ENOUGH)
    await worker.stop()
    assert harness.holds_nothing()
    waiting = harness.one("select count(*) from laneway.ready where retries = 0")
    done = harness.one("select count(*) from laneway.outcome where status = 'completed'")
    assert waiting + done == len(jobs) + 2 * ENOUGH
    assert set(quick.began.values()) == {1}
    await harness.start_worker()
    await quick.harness_is_idle()
    assert set(quick.began.values()) == {1}


async def test_pause_gate_and_drained_lane_stop_claims_ahead(harness: WorkerHarness) -> None:
    quick = QuickHandlers(harness)
    await harness.start_worker()
    await quick.warm()
    for stop, resume in (
        ("update laneway.control set paused = true", "update laneway.control set paused = false"),
        (
            "update laneway.worker_lanes set enabled = false where name = 'default'",
            "update laneway.worker_lanes set enabled = true where name = 'default'",
        ),
    ):
        harness.do(stop)
        await submit(harness, 500)
        await wait_until(lambda: leases(harness) == 0)
        before = len(quick.began)
        assert harness.one("select count(*) from laneway.ready") == 500
        harness.do(resume)
        await quick.harness_is_idle()
        assert len(quick.began) == before + 500


async def test_bounded_lane_keeps_its_slots_with_quick_jobs(harness: WorkerHarness) -> None:
    quick = QuickHandlers(harness)
    await harness.start_worker()
    await quick.warm()
    harness.do("update laneway.worker_lanes set max_slots = 3 where name = 'default'")
    most: list[int] = []
    jobs = await submit(harness, 600)

    def look() -> bool:
        most.append(leases(harness))
        return len(quick.began) == len(jobs) + 2 * ENOUGH

    await wait_until(look)
    assert max(most) <= 3
    await quick.harness_is_idle()


async def test_key_is_held_by_one_quick_job_at_a_time(harness: WorkerHarness) -> None:
    quick, order = QuickHandlers(harness), list[int]()

    @harness.lw.handler("keyed")
    async def keyed(ctx: Context, n: int) -> None:
        order.append(n)

    await harness.start_worker()
    await quick.warm()
    await submit(harness, 300)
    for n in range(20):
        await harness.lw.submit("keyed", {"n": n}, concurrency_key="k")
    await submit(harness, 300)
    await quick.harness_is_idle()
    assert order == list(range(20))


async def test_suspect_among_quick_jobs_runs_apart(harness: WorkerHarness) -> None:
    harness.lw.handlers.add(isolation_handlers.lw.handlers["suspect_async"])
    quick = QuickHandlers(harness)
    await harness.start_worker()
    await quick.warm()
    harness.do("update laneway.control set paused = true")
    job = await harness.lw.submit("suspect_async", max_retries=0)
    # A job in its first attempt has no losses.
    harness.do("update laneway.ready set attempt = 1 where seq = %s", harness.seq(job))
    harness.do(
        "insert into laneway.suspects (seq, losses, lost_with) values (%s, 2, gen_random_uuid())",
        harness.seq(job),
    )
    harness.do("update laneway.control set paused = false")
    ended = await harness.ended(job)
    assert (ended.status, ended.retries) == ("completed", 0)


async def test_job_cancelled_while_it_waits_for_room_ends_cancelled(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    harness = make_harness()
    quick = QuickHandlers(harness)
    await harness.start_worker()
    await quick.warm()
    quick.gate.clear()
    jobs = await submit(harness, 3 * CONCURRENCY)
    for job in jobs[-20:]:
        await job.cancel()
    quick.gate.set()
    await quick.harness_is_idle()
    for job in jobs[-20:]:
        assert harness.status(job) == "cancelled"


@pytest.mark.parametrize("concurrency", [1, 7])
async def test_set_concurrency_bounds_the_leases_of_a_worker(
    make_harness: Callable[..., WorkerHarness], concurrency: int
) -> None:
    harness = make_harness(concurrency=concurrency)
    quick = QuickHandlers(harness)
    QuickHandlers(harness, "other", lane="second")
    await harness.start_worker()
    await quick.warm()
    quick.gate.clear()
    jobs = await submit(harness, 50)
    # The other lane keeps one place.
    running = max(1, concurrency - 1)
    await wait_until(lambda: quick.at_once == running)
    await harness.ended(await harness.lw.submit("other"))
    await wait_until(lambda: leases(harness) == running == quick.at_once)
    quick.gate.set()
    await quick.harness_is_idle()
    assert all(quick.began[str(job.id)] == 1 for job in jobs)
