"""Lanes and processes that want the same limit take turns, for jobs and for calls."""

from __future__ import annotations

import asyncio

import pytest

from laneway import Context, Laneway
from tests.support.worker_harness import QUICK, WorkerHarness, wait_until

MANY, FEW = 24, 3
WAITS = (
    "select exists (select from laneway.limit_turns"
    " where limit_name = 'narrow' and lane = %s and waits)"
)


class Log:
    """The order in which handlers were inside the limit; the first stays until it is let go."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.go = asyncio.Event()

    async def enter(self, who: str) -> None:
        self.order.append(who)
        await self.go.wait()
        # Longer than a few of them: who has waited so long is let in before the next.
        await asyncio.sleep(0.01)

    @property
    def before_last_urgent(self) -> int:
        last = max(n for n, who in enumerate(self.order) if who == "urgent")
        return self.order[:last].count("background")


def add_handlers(lw: Laneway, log: Log, kind: str) -> None:
    for name in ("background", "urgent"):
        limits = ["narrow"] if kind == "run" else []

        @lw.handler(name, lane=f"{name}_lane", limits=limits)
        async def handle(ctx: Context, who: str = name) -> None:
            if kind == "run":
                await log.enter(who)
            else:
                async with ctx.limit("narrow"):
                    await log.enter(who)


@pytest.mark.parametrize("kind", ["run", "call"])
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("priority", [0, 10])
async def test_few_jobs_need_not_wait_for_many_of_another_lane(
    harness: WorkerHarness, kind: str, processes: int, priority: int
) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values ('narrow', 1)")
    log = Log()
    add_handlers(harness.lw, log, kind)
    if processes == 1:
        await harness.start_worker()
    else:
        for lane in ("background_lane", "urgent_lane"):
            await harness.start_worker(only_lanes=frozenset({lane}))
    harness.do("update laneway.worker_lanes set max_slots = null where name like '%_lane'")
    jobs = [await harness.lw.submit("background") for _ in range(MANY)]
    await wait_until(lambda: len(log.order) == 1 and harness.one(WAITS, "background_lane"))
    jobs += [await harness.lw.submit("urgent", priority=priority) for _ in range(FEW)]
    await wait_until(lambda: harness.one(WAITS, "urgent_lane"))
    log.go.set()
    for job in jobs:
        await job.wait(60)
    assert len(log.order) == MANY + FEW
    # One of each round or none, but not all: the process that frees it must not take it again.
    assert log.before_last_urgent <= MANY // 2
    await wait_until(
        lambda: harness.one("select count(*) = 0 from laneway.limit_turns where waits")
    )


async def test_dead_worker_in_the_queue_does_not_block_others(harness: WorkerHarness) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values ('narrow', 1)")
    harness.do(
        "insert into laneway.limit_waiters"
        " (limit_name, lane, worker_id, kind, site, rank, lane_since, since)"
        " values ('narrow', 'urgent_lane', gen_random_uuid(), 'call', '', -100, now(), now())"
    )
    log = Log()
    log.go.set()
    add_handlers(harness.lw, log, "run")
    await harness.start_worker()
    jobs = [await harness.lw.submit("background") for _ in range(3)]
    for job in jobs:
        await job.wait(60)
    assert log.order == ["background"] * 3


async def test_limit_freed_by_a_call_wakes_jobs_that_wait_for_it(harness: WorkerHarness) -> None:
    harness.do("insert into laneway.limits (name, max_concurrent) values ('narrow', 1)")
    calls, runs = Log(), Log()
    runs.go.set()
    caller, runner = Laneway(harness.dsn, **QUICK), Laneway(harness.dsn, **QUICK)

    @caller.handler("caller")
    async def call(ctx: Context) -> None:
        async with ctx.limit("narrow"):
            await calls.enter("call")

    @runner.handler("runner", lane="rarely_polled", limits=["narrow"])
    async def run(ctx: Context) -> None:
        await runs.enter("run")

    async with caller, runner:
        await harness.start_worker(caller)
        await harness.start_worker(runner)
        harness.do("update laneway.worker_lanes set poll_interval_ms = 120000")
        first = await caller.submit("caller")
        await wait_until(lambda: calls.order)
        second = await runner.submit("runner")
        await wait_until(lambda: harness.one(WAITS, "rarely_polled"))
        calls.go.set()
        await first.wait(60)
        await second.wait(60)
