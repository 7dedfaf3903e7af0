"""Lanes as workers see them: slots, order, drain and pause, room, job types that move."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable

import pytest

from laneway import Context, Laneway, SyncContext
from laneway.store import jobs as store
from tests.support.worker_harness import QUICK, SOON, WorkerHarness, wait_until


class Gate:
    """Handlers that wait until they are let go, and who is inside."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside: list[object] = []
        self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.inside.append(object())
            self.most = max(self.most, len(self.inside))

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.inside.pop()

    async def wait(self) -> None:
        with self:
            await wait_until(self.open.is_set)

    def block(self) -> None:
        with self:
            self.open.wait(120)


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_no_lane_ever_runs_more_than_its_slots_over_two_workers(
    either_harness: WorkerHarness, gate: Gate
) -> None:
    harness = either_harness
    seen: list[int] = []

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        with gate:
            await asyncio.sleep(0.01)

    harness.lane("narrow", max_slots=3, poll_interval_ms=100)
    harness.lane("narrow", job_types=["job"])
    await harness.lw.submit_many([("job", {})] * 60)
    await harness.start_worker()
    await harness.start_worker()

    def observe() -> bool:
        running, done = harness.one(
            "select (select count(*) from laneway.lease), (select count(*) from laneway.outcome)"
        )
        seen.append(running)
        return bool(done == 60)

    await wait_until(observe)
    assert max(seen) <= 3
    assert gate.most <= 3
    await wait_until(harness.holds_nothing)


async def test_lane_of_one_slot_is_single_file_in_order_over_two_workers(
    either_harness: WorkerHarness,
) -> None:
    harness = either_harness
    order: list[int] = []
    inside = 0

    @harness.lw.handler("job")
    async def job(ctx: Context, n: int) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        order.append(n)
        await asyncio.sleep(0)
        inside -= 1

    harness.lane("single", max_slots=1, poll_interval_ms=100)
    harness.lane("single", job_types=["job"])
    await harness.start_worker()
    await harness.start_worker()
    jobs = await harness.lw.submit_many([("job", {"n": n}) for n in range(40)])
    await wait_until(lambda: harness.count("completed") == len(jobs))
    assert order == list(range(40))


async def test_new_priority_before_the_start_changes_the_order(harness: WorkerHarness) -> None:
    order: list[str] = []

    @harness.lw.handler("job")
    async def job(ctx: Context, name: str) -> None:
        order.append(name)

    harness.lane("single", max_slots=1, poll_interval_ms=100)
    harness.lane("single", job_types=["job"])
    names = ["first", "second", "raised", "high"]
    jobs = {
        name: await harness.lw.submit("job", {"name": name}, priority=5 if name == "high" else 0)
        for name in names
    }
    await harness.lw.database.run(store.reprioritize(jobs["raised"].id, 100))
    await harness.start_worker()
    await wait_until(lambda: harness.count("completed") == 4)
    assert order == ["raised", "high", "first", "second"]
    assert (await jobs["raised"].get()).priority == 100


@pytest.mark.parametrize("way", ["drain", "pause"])
async def test_drain_and_pause_stop_claims_and_let_running_jobs_finish(
    either_harness: WorkerHarness, gate: Gate, way: str
) -> None:
    harness = either_harness

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await gate.wait()

    def shut(is_shut: bool) -> None:
        if way == "drain":
            harness.lane("default", enabled=not is_shut)
        else:
            harness.do("update laneway.control set paused = %s", is_shut)

    await harness.start_worker()
    running = await harness.lw.submit("job")
    await harness.running(running)
    shut(True)
    waiting = await harness.lw.submit("job")
    gate.open.set()
    await running.wait(60)
    assert harness.status(waiting) == "approved"
    shut(False)
    await waiting.wait(60)


async def test_slots_and_polls_are_tuned_without_a_restart(
    harness: WorkerHarness, gate: Gate
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await gate.wait()

    harness.lane("tuned", max_slots=1, poll_interval_ms=200)
    harness.lane("tuned", job_types=["job"])
    worker = await harness.start_worker()
    await harness.lw.submit_many([("job", {})] * 5)
    await wait_until(lambda: len(gate.inside) == 1)
    harness.lane("tuned", max_slots=3)
    await wait_until(lambda: len(gate.inside) == 3)
    harness.lane("tuned", max_slots=1)
    await worker.loops["tuned"].run_once()
    assert len(gate.inside) == 3
    harness.lane("tuned", max_slots=0)
    gate.open.set()
    await wait_until(lambda: harness.count("completed") == 3)
    assert harness.count("approved") == 2
    harness.lane("tuned", max_slots=None)
    await wait_until(lambda: harness.count("completed") == 5)


async def test_full_lane_does_not_keep_another_from_starting(
    make_harness: Callable[..., WorkerHarness], gate: Gate
) -> None:
    harness = make_harness(concurrency=4)

    @harness.lw.handler("slow", lane="a")
    async def slow(ctx: Context) -> None:
        await gate.wait()

    @harness.lw.handler("quick", lane="b")
    async def quick(ctx: Context) -> str:
        return "done"

    worker = await harness.start_worker()
    harness.lane("a", max_slots=None, poll_interval_ms=100)
    await harness.lw.submit_many([("slow", {})] * 20)
    await wait_until(lambda: len(gate.inside) == 3)
    for _ in range(3):
        assert await (await harness.lw.submit("quick")).wait(60) == "done"
    assert worker.capacity.in_use == 3
    gate.open.set()
    await wait_until(lambda: harness.count("completed") == 23)


async def test_busy_threads_of_one_lane_leave_a_thread_for_another(
    harness: WorkerHarness, gate: Gate
) -> None:
    @harness.lw.handler("slow", lane="a")
    def slow(ctx: SyncContext) -> None:
        gate.block()

    @harness.lw.handler("quick", lane="b")
    def quick(ctx: SyncContext) -> str:
        return "done"

    await harness.start_worker()
    harness.lane("a", max_slots=None, poll_interval_ms=100)
    await harness.lw.submit_many([("slow", {})] * 50)
    await wait_until(lambda: len(gate.inside) == 31)
    assert await (await harness.lw.submit("quick")).wait(60) == "done"
    ours = [t for t in threading.enumerate() if re.fullmatch(r"laneway-\d+", t.name)]
    assert len(ours) == 32
    gate.open.set()
    await wait_until(lambda: harness.count("completed") == 51)
    assert gate.most == 31


async def test_lanes_that_claim_together_do_not_take_the_same_room_twice(
    make_harness: Callable[..., WorkerHarness], gate: Gate
) -> None:
    harness = make_harness(threads=8)
    for lane in "abcd":

        @harness.lw.handler(f"job_{lane}", lane=lane)
        def job(ctx: SyncContext) -> None:
            gate.block()

        harness.lane(lane, max_slots=None)
    await harness.lw.submit_many([(f"job_{lane}", {}) for lane in "abcd" for _ in range(10)])
    worker = await harness.start_worker()
    await wait_until(lambda: len(gate.inside) == 8)
    for loop in worker.loops.values():
        await loop.run_once()
    assert gate.most == 8
    gate.open.set()
    await wait_until(lambda: harness.count("completed") == 40)
    assert gate.most == 8


async def test_room_that_one_lane_releases_is_used_by_another(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    """At once, not when the other lane polls the next time."""
    harness = make_harness(threads=3)
    gates = {"a": Gate(), "b": Gate()}

    @harness.lw.handler("job_a", lane="a")
    def job_a(ctx: SyncContext) -> None:
        gates["a"].block()

    @harness.lw.handler("job_b", lane="b")
    def job_b(ctx: SyncContext) -> None:
        gates["b"].block()

    for lane in "ab":
        harness.lane(lane, max_slots=None, poll_interval_ms=120000)
    await harness.lw.submit_many([("job_a", {})] * 2)
    await harness.start_worker()
    await wait_until(lambda: len(gates["a"].inside) == 2)
    await harness.lw.submit_many([("job_b", {})] * 2)
    await wait_until(lambda: len(gates["b"].inside) == 1)
    gates["a"].open.set()
    await wait_until(lambda: len(gates["b"].inside) == 2, timeout=60)
    gates["b"].open.set()
    await wait_until(lambda: harness.count("completed") == 4)


async def test_job_type_moves_to_another_lane_with_its_waiting_jobs(
    harness: WorkerHarness, gate: Gate
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await gate.wait()

    harness.lane("old", max_slots=1, poll_interval_ms=100)
    harness.lane("old", job_types=["job"])
    harness.lane("new", max_slots=4, poll_interval_ms=100)
    await harness.start_worker()
    jobs = await harness.lw.submit_many([("job", {})] * 6)
    await wait_until(lambda: len(gate.inside) == 1)
    with harness.conn.transaction():
        harness.lane("old", job_types=[])
        harness.lane("new", job_types=["job"])
    await wait_until(lambda: len(gate.inside) == 5)
    assert harness.rows("select lane, count(*) from laneway.lease group by 1 order by 1") == [
        ("new", 4),
        ("old", 1),
    ]
    gate.open.set()
    await wait_until(lambda: harness.count("completed") == len(jobs))
    await wait_until(harness.holds_nothing)


async def test_worker_serves_only_its_named_lanes(harness: WorkerHarness) -> None:
    @harness.lw.handler("here", lane="a")
    async def here(ctx: Context) -> str:
        return "ran"

    @harness.lw.handler("there", lane="b")
    async def there(ctx: Context) -> str:
        return "ran"

    await harness.start_worker(only_lanes=frozenset({"a"}))
    elsewhere = await harness.lw.submit("there")
    assert await (await harness.lw.submit("here")).wait(60) == "ran"
    assert harness.status(elsewhere) == "approved"
    await harness.start_worker(only_lanes=frozenset({"b"}))
    assert await elsewhere.wait(60) == "ran"


async def test_worker_logs_a_named_lane_that_does_not_exist(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("here", lane="a")
    async def here(ctx: Context) -> None: ...

    with caplog.at_level(logging.WARNING, "laneway"):
        await harness.start_worker(only_lanes=frozenset({"a", "defualt"}))
    assert "lane defualt does not exist and is not served; did you mean default?" in caplog.text


async def test_worker_whose_lanes_have_none_of_its_types_warns(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("here", lane="a")
    async def here(ctx: Context) -> None: ...

    @harness.lw.handler("there", lane="b")
    async def there(ctx: Context) -> None: ...

    with caplog.at_level(logging.WARNING, "laneway"):
        await harness.start_worker(only_lanes=frozenset({"maintenance"}))
    (record,) = [one for one in caplog.records if "serves no lane" in one.getMessage()]
    assert record.levelno == logging.WARNING
    assert "none of its job types is in maintenance" in record.getMessage()
    assert record.getMessage().endswith("here is in a, there is in b")


async def test_lane_a_handler_names_is_created_and_adopts_the_type(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("job", lane="fresh")
    async def job(ctx: Context) -> None: ...

    harness.lane("default", poll_interval_ms=700)
    with caplog.at_level(logging.INFO, "laneway"):
        await harness.start_worker()
    query = (
        "select job_types, max_slots, poll_interval_ms, stale_timeout_minutes"
        " from laneway.worker_lanes where name = 'fresh'"
    )
    assert harness.one(query) == (["job"], None, 700, 30)
    assert "lane fresh did not exist and was created without a bound" in caplog.text
    assert "`laneway lanes set fresh --max-slots N`" in caplog.text
    harness.lane("fresh", max_slots=3)
    caplog.clear()
    with caplog.at_level(logging.INFO, "laneway"):
        await harness.start_worker()
    assert harness.one(query)[1] == 3, "never overwritten"
    assert "without a bound" not in caplog.text
    submitted = await harness.lw.submit("job")
    await submitted.wait(60)
    assert (await submitted.get()).lane == "fresh"


async def test_row_of_a_lane_beats_the_option_of_its_handler(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", lane="wish")
    async def job(ctx: Context) -> None: ...

    harness.lane("operator", max_slots=7)
    harness.lane("operator", job_types=["job"])
    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await submitted.wait(60)
    assert (await submitted.get()).lane == "operator"
    rows = harness.rows("select name, max_slots from laneway.worker_lanes where job_types <> '{}'")
    assert ("operator", 7) in rows


async def test_lanes_in_the_settings_are_created_and_never_overwritten(dsn: str) -> None:
    lanes = {"lanes": {"here": {"max_slots": 3}, "there": {"max_slots": 4}}}
    async with WorkerHarness(dsn, lanes=lanes) as harness:

        @harness.lw.handler("job")
        async def job(ctx: Context) -> None: ...

        harness.lane("there", max_slots=9)
        await harness.start_worker()
        rows = harness.rows(
            "select name, max_slots from laneway.worker_lanes where name in ('here', 'there')"
            " order by 1"
        )
        assert rows == [("here", 3), ("there", 9)]


async def test_unknown_job_type_waits_until_a_worker_knows_it(harness: WorkerHarness) -> None:
    @harness.lw.handler("known")
    async def known(ctx: Context) -> None: ...

    await harness.start_worker()
    unknown = await harness.lw.submit("mystery", {"a": 1})
    await (await harness.lw.submit("known")).wait(60)
    assert harness.status(unknown) == "approved"
    async with Laneway(harness.dsn, **QUICK) as other:

        @other.handler("mystery")
        async def mystery(ctx: Context, a: int) -> int:
            return a

        worker = await harness.start_worker(other)
        assert await unknown.wait(60) == 1
        await worker.stop()


async def test_job_types_of_one_lane_are_served_in_one_order(harness: WorkerHarness) -> None:
    order: list[int] = []
    for name in ("x", "y", "z"):

        @harness.lw.handler(name, retry=SOON)
        async def job(ctx: Context, n: int) -> None:
            order.append(n)

    harness.lane("mixed", max_slots=1, poll_interval_ms=100)
    harness.lane("mixed", job_types=["x", "y", "z"])
    await harness.lw.submit_many([("xyz"[n % 3], {"n": n}) for n in range(30)])
    await harness.start_worker()
    await wait_until(lambda: harness.count("completed") == 30)
    assert order == list(range(30))


async def test_configured_lane_that_differs_from_database_is_logged(
    make_harness: Callable[..., WorkerHarness],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lanes = (
        '[{"name": "interactive", "max_slots": 5, "stale_timeout_minutes": 30},'
        ' {"name": "mine", "job_types": ["ingestion", "novel"], "max_slots": 1}]'
    )
    monkeypatch.setenv("LANEWAY_LANES", lanes)
    await make_harness().start_worker()
    await make_harness().start_worker()
    texts = [r.getMessage() for r in caplog.records if "LANEWAY_LANES" in r.getMessage()]
    assert len(texts) == 4
    lane, moved = texts[: len(texts) // 2]
    assert texts == [lane, moved] * 2
    assert "lane interactive in the database differs" in lane
    assert "max_slots is 2, configured 5. To change it:" in lane
    assert "`laneway lanes set interactive --max-slots 5`" in lane
    assert "job type ingestion is in the lane interactive" in moved
    assert "`laneway lanes move ingestion mine`" in moved


async def test_jobs_of_a_full_lane_are_settled_in_portions(harness: WorkerHarness) -> None:
    go_on = asyncio.Event()

    @harness.lw.handler("held")
    async def held(ctx: Context) -> None:
        await go_on.wait()

    harness.do("update laneway.worker_lanes set max_slots = 400 where name = 'default'")
    await harness.lw.submit_many([("held", {}, {}) for _ in range(410)])
    await harness.start_worker_with({"concurrency": 500})
    await wait_until(lambda: harness.one("select count(*) from laneway.lease") == 400)
    go_on.set()
    await wait_until(lambda: harness.one("select count(*) from laneway.outcome") == 410)
    # Each batch is one transaction.
    sizes = "select count(*) as size from laneway.outcome group by xmin"
    largest = harness.one(f"select max(size) from ({sizes}) x")
    assert largest <= 200
