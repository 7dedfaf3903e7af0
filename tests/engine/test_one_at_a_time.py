"""Bounds on the jobs of a process: at once, in all, and in one child."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

import pytest

from laneway import Context, JobHandle, SyncContext
from laneway.engine.claim.capacity import Capacity
from tests.engine import fork_app
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until


class Watch:
    """Counts how many handlers run at the same moment, and in which order lanes had their turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self.most = 0
        self.order: list[str] = []

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._running -= 1


async def test_one_slot_runs_one_job_at_a_time_of_every_kind(harness: WorkerHarness) -> None:
    watch = Watch()

    @harness.lw.handler("async_job", lane="a")
    async def async_job(ctx: Context) -> None:
        with watch:
            watch.order.append("a")
            await asyncio.sleep(0.02)

    @harness.lw.handler("thread_job", lane="b")
    def thread_job(ctx: SyncContext) -> None:
        with watch:
            watch.order.append("b")
            time.sleep(0.02)

    jobs = [
        await harness.lw.submit(job_type)
        for job_type in ("async_job", "thread_job")
        for _ in range(8)
    ]
    await harness.start_worker_with({"slots": 1})
    for job in jobs:
        await job.wait(60)
    assert watch.most == 1
    # Neither lane waits until the other has nothing left.
    assert set(watch.order[:4]) == {"a", "b"}


def test_slots_bound_all_kinds_and_keep_a_place_for_each_lane() -> None:
    capacity = Capacity({"async": 10, "thread": 10}, slots=3)
    capacity.serve({"a": {"async"}, "b": {"thread"}})
    assert capacity.free("a", "async") == 2
    capacity.take("a", "async", 2)
    assert (capacity.free("a", "async"), capacity.free("b", "thread")) == (0, 1)
    capacity.take("b", "thread", 1)
    assert (capacity.free("b", "thread"), capacity.most("b")) == (0, 0)
    capacity.release("a", "async")
    assert (capacity.free("a", "async"), capacity.free("b", "thread")) == (1, 1)


async def ended(harness: WorkerHarness, jobs: list[JobHandle]) -> int:
    return sum(harness.status(job) == "completed" for job in jobs)


async def test_process_exits_after_exactly_max_jobs(harness: WorkerHarness) -> None:
    jobs = [await harness.lw.submit("pid") for _ in range(5)]
    with WorkerCommand(harness.dsn, "--max-jobs=3") as command:
        await wait_until(command.all_gone)
    assert command.process.returncode == 0
    assert await ended(harness, jobs) == 3
    assert harness.holds_nothing()


async def test_supervisor_replaces_process_after_max_jobs(harness: WorkerHarness) -> None:
    jobs = [await harness.lw.submit("pid") for _ in range(2)]
    with WorkerCommand(harness.dsn, "--processes=1", "--max-jobs=1") as command:
        pids = {await job.wait(60) for job in jobs}
        await wait_until(command.terminate_again)
    assert len(pids) == 2


async def test_child_is_replaced_after_max_jobs_per_child(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    harness = make_harness(max_jobs_per_child=1, children=1)
    handler = fork_app.lw.handlers.get("isolated_pid")
    assert handler is not None
    harness.lw.handlers.add(handler)
    await harness.start_worker()
    pids = [await (await harness.lw.submit("isolated_pid")).wait(60) for _ in range(2)]
    assert len(set(pids)) == 2
    assert os.getpid() not in pids


def talk(harness: WorkerHarness) -> None:
    handler = fork_app.lw.handlers.get("talkative")
    assert handler is not None
    harness.lw.handlers.add(handler)


async def test_output_of_isolated_handler_is_kept_with_its_attempt(
    harness: WorkerHarness, capfd: pytest.CaptureFixture[str]
) -> None:
    talk(harness)
    await harness.start_worker()
    job = await harness.lw.submit("talkative", {"lines": 3, "then": "return"})
    await job.wait(60)
    log = [line.message for line in (await job.get()).attempts[0].log]
    assert log[1:4] == ["line 0", "line 1", "line 2"]
    assert "hunter2secret" not in log[0]
    assert (log[4][:3], log[4][-1]) == ("xxx", "…")
    assert len(log[4]) < 10_000
    assert log[5] == "no newline at the end"
    err = capfd.readouterr().err
    assert f"line 2 job_id={job.id}" in err
    assert "hunter2secret" not in err


async def test_last_output_of_a_crashed_child_is_kept(harness: WorkerHarness) -> None:
    talk(harness)
    await harness.start_worker()
    job = await harness.lw.submit("talkative", {"lines": 2000, "then": "crash"})
    ended = await harness.ended(job)
    attempt = ended.attempts[0]
    assert ended.error is not None
    assert ended.error.type == "ChildDied"
    # Bounded: the first thousand and a word that there was more.
    assert attempt.log_lines == 1001
    assert "not kept" in attempt.log[-1].message
