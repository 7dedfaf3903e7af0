"""Limits for a whole run and keys, as workers see them: who may start, and who is woken."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from laneway import Context, Laneway
from laneway.engine.worker import Worker
from tests.support.worker_harness import QUICK, SOON, WorkerHarness, wait_until


class Floor:
    """The jobs inside a handler: their number, their order, and a gate that holds them there."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self.order: list[str] = []
        self.door = asyncio.Event()

    @asynccontextmanager
    async def enter(self, who: str) -> AsyncIterator[None]:
        self.inside.append(who)
        self.order.append(who)
        self.most = max(self.most, len(self.inside))
        try:
            yield
        finally:
            self.inside.remove(who)

    async def stay(self, who: str) -> None:
        async with self.enter(who):
            await self.door.wait()

    async def pass_through(self, who: str) -> None:
        async with self.enter(who):
            await asyncio.sleep(0.005)


@pytest.fixture
async def floor() -> Floor:
    return Floor()


@pytest.fixture
def sleepy(harness: WorkerHarness) -> WorkerHarness:
    """Its workers poll once in two minutes: what starts sooner was not found by polling."""
    harness.do("update laneway.worker_lanes set poll_interval_ms = 120000")
    return harness


def limit(harness: WorkerHarness, name: str, most: int | None) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values (%s, %s)", name, most)


async def ready(worker: Worker) -> None:
    await wait_until(lambda: worker.heartbeat.is_ready)
    if worker.settings.can_listen:
        await wait_until(lambda: worker.wakeups.is_listening)


def is_given_back(harness: WorkerHarness) -> bool:
    used = harness.one("select coalesce(sum(abs(running)), 0)::integer from laneway.limit_usage")
    return harness.holds_nothing() and used == 0


async def test_types_that_share_a_limit_never_exceed_it_over_two_workers(
    either_harness: WorkerHarness, floor: Floor
) -> None:
    harness = either_harness
    limit(harness, "x", 3)

    @harness.lw.handler("one", limits=["x"])
    async def one(ctx: Context) -> None:
        await floor.pass_through("one")

    @harness.lw.handler("two", limits=["x"])
    async def two(ctx: Context) -> None:
        await floor.pass_through("two")

    await harness.lw.submit_many([("one", {}), ("two", {})] * 60)
    await harness.start_worker()
    await harness.start_worker()
    await wait_until(lambda: harness.count("completed") == 120)
    assert floor.most == 3
    await wait_until(lambda: is_given_back(harness))


async def test_jobs_that_wait_for_a_limit_block_no_other_job(
    harness: WorkerHarness, floor: Floor
) -> None:
    limit(harness, "x", 1)
    harness.lane("narrow", max_slots=2)
    harness.lane("narrow", job_types=["busy", "free"])

    @harness.lw.handler("busy", limits=["x"], priority=9)
    async def busy(ctx: Context) -> None:
        await floor.stay("busy")

    @harness.lw.handler("free")
    async def free(ctx: Context) -> None: ...

    await harness.lw.submit_many([("busy", {})] * 50)
    jobs = await harness.lw.submit_many([("free", {})] * 20)
    await harness.start_worker()
    await wait_until(lambda: all(harness.status(job) == "completed" for job in jobs))
    assert floor.inside == ["busy"]
    floor.door.set()
    await wait_until(lambda: harness.count("completed") == 70)
    assert floor.most == 1


async def test_limit_that_is_raised_counts_within_a_poll_interval(
    either_harness: WorkerHarness, floor: Floor
) -> None:
    harness = either_harness
    limit(harness, "x", 0)

    @harness.lw.handler("job", limits=["x"])
    async def job(ctx: Context) -> None:
        await floor.stay("job")

    worker = await harness.start_worker()
    await ready(worker)
    await harness.lw.submit_many([("job", {})] * 9)
    loop = worker.loops["default"]
    await wait_until(lambda: loop.is_full)
    assert floor.inside == []
    harness.do("update laneway.limits set max_concurrent = 2 where name = 'x'")
    await wait_until(lambda: len(floor.inside) == 2, timeout=60)
    harness.do("update laneway.limits set max_concurrent = 5 where name = 'x'")
    await wait_until(lambda: len(floor.inside) == 5, timeout=60)
    harness.do("update laneway.limits set max_concurrent = null where name = 'x'")
    await wait_until(lambda: len(floor.inside) == 9, timeout=60)
    floor.door.set()
    await wait_until(lambda: harness.count("completed") == 9)


async def test_end_of_a_job_starts_the_next_that_waits_for_its_limit_at_once(
    sleepy: WorkerHarness, floor: Floor
) -> None:
    limit(sleepy, "x", 1)

    @sleepy.lw.handler("job", limits=["x"])
    async def job(ctx: Context) -> None:
        await floor.pass_through("job")

    await sleepy.lw.submit_many([("job", {})] * 30)
    await sleepy.start_worker()
    await wait_until(lambda: sleepy.count("completed") == 30, timeout=60)
    assert floor.most == 1


async def test_freed_limit_wakes_a_worker_of_other_types(
    sleepy: WorkerHarness, floor: Floor
) -> None:
    limit(sleepy, "x", 1)

    @sleepy.lw.handler("here", limits=["x"])
    async def here(ctx: Context) -> None:
        await floor.stay("here")

    await ready(await sleepy.start_worker())
    first = await sleepy.lw.submit("here")
    await wait_until(lambda: floor.inside == ["here"])
    async with Laneway(sleepy.dsn, **QUICK) as other:

        @other.handler("there", limits=["x"])
        async def there(ctx: Context) -> str:
            return "ran"

        worker = await sleepy.start_worker(other)
        await ready(worker)
        second = await other.submit("there")
        loop = worker.loops["default"]
        await wait_until(lambda: loop.is_full)
        assert sleepy.status(second) == "approved"
        floor.door.set()
        assert await second.wait(60) == "ran"
        await first.wait(60)
        await worker.stop()


async def test_limit_that_a_lost_job_held_is_used_again(
    sleepy: WorkerHarness, floor: Floor
) -> None:
    limit(sleepy, "x", 1)

    @sleepy.lw.handler("lost", limits=["x"], max_retries=0)
    async def lost(ctx: Context) -> None:
        await floor.stay("lost")

    @sleepy.lw.handler("next", limits=["x"])
    async def next_(ctx: Context) -> str:
        return "ran"

    await ready(await sleepy.start_worker())
    first = await sleepy.lw.submit("lost")
    await wait_until(lambda: floor.inside == ["lost"])
    second = await sleepy.lw.submit("next")
    sleepy.lapse(first)
    assert await second.wait(60) == "ran"
    assert sleepy.status(first) == "failed"
    await wait_until(lambda: is_given_back(sleepy))


async def test_rate_delays_jobs_and_then_starts_them(sleepy: WorkerHarness) -> None:
    sleepy.do(
        "insert into laneway.limits (name, max_concurrent, rate_count, rate_period_s)"
        " values ('x', null, 3, 0.5)"
    )
    starts: list[float] = []

    @sleepy.lw.handler("job", limits=["x"])
    async def job(ctx: Context) -> None:
        starts.append(time.monotonic())

    await ready(await sleepy.start_worker())
    await sleepy.lw.submit_many([("job", {})] * 9)
    await wait_until(lambda: sleepy.count("completed") == 9, timeout=60)
    claimed = [row[0] for row in sleepy.rows("select claimed_at from laneway.outcome order by 1")]
    for first, fourth in zip(claimed, claimed[3:], strict=False):
        assert (fourth - first).total_seconds() > 0.5


async def test_missing_limit_is_created_and_logged(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values ('known', 7)")

    @harness.lw.handler("job", limits=["fresh", "known"])
    async def job(ctx: Context) -> str:
        return "ran"

    with caplog.at_level(logging.WARNING, "laneway"):
        await harness.start_worker()
    assert "limit fresh did not exist and was created without a bound" in caplog.text
    assert "`laneway limits set fresh --max-concurrent N`" in caplog.text
    assert "known" not in caplog.text
    rows = harness.rows(
        "select name, max_concurrent from laneway.limits"
        " where name in ('fresh', 'known') order by 1"
    )
    assert rows == [("fresh", None), ("known", 7)]
    who = harness.one(
        "select by from laneway.control_history where kind = 'limit' and name = 'fresh'"
    )
    assert who.startswith("worker ")
    assert await (await harness.lw.submit("job")).wait(60) == "ran"
    version = harness.one("select version from laneway.control")
    harness.do("update laneway.limits set max_concurrent = 4 where name = 'fresh'")
    await harness.start_worker()
    assert harness.one("select max_concurrent from laneway.limits where name = 'fresh'") == 4
    assert harness.one("select version from laneway.control") == version + 1, "a start changed it"


# -- keys -----------------------------------------------------------------------------------


async def test_jobs_of_one_key_never_overlap_and_keep_their_order(
    either_harness: WorkerHarness,
) -> None:
    harness = either_harness
    floors = {name: Floor() for name in "abcd"}

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context, key: str, n: int) -> None:
        floor = floors[key]
        await (floor.stay if n == 0 else floor.pass_through)(f"{n:03}")

    await harness.start_worker()
    await harness.start_worker()

    async def submit(n: int) -> None:
        for key in floors:
            await harness.lw.submit("job", {"key": key, "n": n}, concurrency_key=key)

    # Two claims at the same moment may swap the first two jobs of a free key.
    await submit(0)
    await wait_until(lambda: all(floor.inside for floor in floors.values()))
    for n in range(1, 25):
        await submit(n)
    waiting = "select count(*) from laneway.key_waiters"
    await wait_until(lambda: harness.one(waiting) == 96)
    for floor in floors.values():
        floor.door.set()
    await wait_until(lambda: harness.count("completed") == 100)
    for floor in floors.values():
        assert floor.most == 1
        assert floor.order == sorted(floor.order)
    assert harness.one("select count(*) from laneway.key_waiters") == 0
    assert harness.one("select count(*) from laneway.key_holders") == 0


async def test_busy_key_blocks_neither_single_slot_lane_nor_later_jobs(
    harness: WorkerHarness, floor: Floor
) -> None:
    harness.lane("single", max_slots=1, poll_interval_ms=100)
    harness.lane("single", job_types=["free"])

    @harness.lw.handler("holder")
    async def holder(ctx: Context) -> None:
        await floor.stay("holder")

    @harness.lw.handler("free")
    async def free(ctx: Context) -> None: ...

    await harness.start_worker()
    await harness.lw.submit("holder", concurrency_key="k")
    await wait_until(lambda: floor.inside == ["holder"])
    for _ in range(50):
        await harness.lw.submit("free", concurrency_key="k", priority=5)
    behind = await harness.lw.submit("free")
    await behind.wait(60)
    await wait_until(lambda: harness.one("select count(*) from laneway.key_waiters") == 50)
    floor.door.set()
    await wait_until(lambda: harness.count("completed") == 52)


async def test_key_handed_on_wakes_the_worker_of_its_next_job(
    sleepy: WorkerHarness, floor: Floor
) -> None:
    @sleepy.lw.handler("here")
    async def here(ctx: Context) -> None:
        await floor.stay("here")

    await ready(await sleepy.start_worker())
    await sleepy.lw.submit("here", concurrency_key="k")
    await wait_until(lambda: floor.inside == ["here"])
    async with Laneway(sleepy.dsn, **QUICK) as other:

        @other.handler("there")
        async def there(ctx: Context) -> str:
            return "ran"

        worker = await sleepy.start_worker(other)
        await ready(worker)
        waits = await other.submit("there", concurrency_key="k")
        await wait_until(lambda: sleepy.one("select count(*) from laneway.key_waiters") == 1)
        floor.door.set()
        assert await waits.wait(60) == "ran"
        await worker.stop()
