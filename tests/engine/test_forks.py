"""Handlers that fork: a forked child is not part of the worker, and a worker always stops."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from laneway import JobHandle
from tests.engine.fork_app import lw as fork_app
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until

APP = "tests.engine.fork_app:lw"


def saved_pids(harness: WorkerHarness, job: JobHandle) -> list[int]:
    """The worker's process and what it has forked, by what the handler saved."""
    rows = harness.rows(
        "select p.checkpoint from laneway.progress p join laneway.lease l using (seq, attempt)"
        " where seq = %s",
        harness.seq(job),
    )
    return list(rows[0][0]) if rows else []


def all_saved_pids(harness: WorkerHarness, jobs: list[JobHandle]) -> list[list[int]]:
    """The same for several jobs, once all of them have saved."""
    found = [saved_pids(harness, job) for job in jobs]
    return found if all(found) else []


@contextlib.contextmanager
def ended_after(pids: list[int]) -> Iterator[None]:
    """Kill what handlers left behind."""
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def adopt(harness: WorkerHarness, *job_types: str) -> None:
    for job_type in job_types:
        handler = fork_app.handlers.get(job_type)
        assert handler is not None
        harness.lw.handlers.add(handler)


async def test_forked_child_does_not_keep_lease_of_killed_worker(harness: WorkerHarness) -> None:
    job_types = ("fork_and_wait", "c_fork_and_wait", "thread_pool_and_wait")
    harness.lane("default", lease_seconds=2)
    with WorkerCommand(harness.dsn, app=APP) as command:
        jobs = [await harness.lw.submit(job_type) for job_type in job_types]
        saved = await wait_until(lambda: all_saved_pids(harness, jobs))
        all_forked = [forked for _, forked in saved]
        with ended_after(all_forked):
            (heartbeat,) = command.of("heartbeat_child")
            assert {worker for worker, _ in saved} == {command.process.pid}
            command.kill()
            await wait_until(lambda: not heartbeat.is_running() or heartbeat.status() == "zombie")
            adopt(harness, *job_types)
            await harness.start_worker()
            assert [await job.wait(60) for job in jobs] == [2, 2, 2]
            for forked in all_forked:
                os.kill(forked, 0)  # it lives, and kept nothing


ALONE: tuple[str, ...] = ()
SUPERVISED = ("--processes=1",)


@pytest.mark.parametrize(
    "options, job_types",
    [
        (ALONE, ("fork_and_wait", "pool_and_wait")),
        (SUPERVISED, ("c_fork_and_wait", "thread_pool_and_wait")),
    ],
    ids=["alone", "supervised"],
)
async def test_worker_stops_within_grace_while_forked_child_lives(
    harness: WorkerHarness, options: tuple[str, ...], job_types: tuple[str, ...]
) -> None:
    with WorkerCommand(harness.dsn, *options, app=APP, LANEWAY_SHUTDOWN_GRACE="0.5") as command:
        jobs = [await harness.lw.submit(job_type) for job_type in job_types]
        saved = await wait_until(lambda: all_saved_pids(harness, jobs))
        with ended_after([forked for _, forked in saved]):
            command.of("heartbeat_child")
            command.process.send_signal(signal.SIGTERM)
            await wait_until(lambda: command.process.poll() is not None)
            assert not command.of("heartbeat_child")
    assert command.process.returncode == 0
    for job in jobs:
        ended = await job.get()
        assert (ended.status, ended.retries) == ("approved", 0)
        assert ended.attempts[0].outcome == "released"


async def test_forked_child_that_leaves_handler_ends_there(
    harness: WorkerHarness, forker: WorkerCommand
) -> None:
    jobs = [
        (code, await harness.lw.submit(job_type, {"how": how}))
        for job_type in ("fork_async", "fork_thread", "fork_process", "fork_async_process")
        for how, code in (("return", 0), ("raise", 1), ("exit", 7))
    ]
    for code, job in jobs:
        assert await job.wait(60) == ["parent", code]
        ended = await job.get()
        assert (ended.status, ended.attempt) == ("completed", 1)
    # The worker goes on.
    assert await (await harness.lw.submit("pid")).wait(60) == forker.process.pid


async def test_forked_task_of_handler_does_not_run_the_loop_on(
    harness: WorkerHarness, forker: WorkerCommand
) -> None:
    job = await harness.lw.submit("fork_task")
    assert await job.wait(60) == ["parent", 0]
    assert await (await harness.lw.submit("pid")).wait(60) == forker.process.pid


async def test_signal_to_forked_child_does_not_reach_the_worker(
    harness: WorkerHarness, forker: WorkerCommand
) -> None:
    job = await harness.lw.submit("terminate_fork")
    assert await job.wait(60) == -signal.SIGTERM
    assert await (await harness.lw.submit("pid")).wait(60) == forker.process.pid


async def test_forked_child_holds_no_connection_or_pipe_of_its_worker(
    harness: WorkerHarness, forker: WorkerCommand
) -> None:
    # So that an isolated child and its socket are there too.
    await (await harness.lw.submit("isolated_pid")).wait(60)
    found: Any = await (await harness.lw.submit("descriptors")).wait(60)
    sockets = [line for line in found if "socket:" in line]
    # The two ends by which the worker's loop is woken from threads stay; they say nothing.
    assert len(sockets) <= 2, found


@pytest.fixture
async def forker(harness: WorkerHarness) -> AsyncIterator[WorkerCommand]:
    """One worker process with the handlers that fork; it must stop by itself at the end."""
    with WorkerCommand(harness.dsn, app=APP) as command:
        yield command
        assert command.process.poll() is None
        command.terminate()
        await wait_until(command.all_gone)
        assert command.process.returncode == 0


@pytest.mark.parametrize(
    "number, options",
    [(signal.SIGTERM, ALONE), (signal.SIGTERM, SUPERVISED), (signal.SIGCHLD, ALONE)],
)
async def test_worker_stops_though_handler_ignores_signal(
    harness: WorkerHarness, number: int, options: tuple[str, ...]
) -> None:
    with WorkerCommand(harness.dsn, *options, app=APP, LANEWAY_SHUTDOWN_GRACE="0.5") as command:
        job = await harness.lw.submit("ignore_signal", {"number": int(number)})
        await wait_until(lambda: saved_pids(harness, job))
        if number == signal.SIGCHLD:
            # A child that ends is noticed all the same.
            died = await harness.ended(await harness.lw.submit("isolated_exit"))
            assert died.error is not None
            assert died.error.type == "ChildDied"
        await wait_until(command.terminate_again)
    assert command.process.returncode == 0
    ended = await job.get()
    assert (ended.status, ended.retries) == ("approved", 0)


@pytest.mark.parametrize("options", [ALONE, SUPERVISED], ids=["alone", "supervised"])
async def test_worker_stops_though_handler_blocks_its_loop(
    harness: WorkerHarness, options: tuple[str, ...]
) -> None:
    quick = {"LANEWAY_SHUTDOWN_GRACE": "0.2", "FORK_APP_EXIT_S": "1"}
    with WorkerCommand(harness.dsn, *options, app=APP, **quick) as command:
        job = await harness.lw.submit("block")
        await wait_until(lambda: saved_pids(harness, job))
        command.terminate()
        await wait_until(command.all_gone)


@pytest.mark.parametrize("why", ["hook", "thread"])
async def test_nothing_that_waits_at_exit_keeps_a_stopped_worker(
    harness: WorkerHarness, why: str
) -> None:
    quick = {"LANEWAY_SHUTDOWN_GRACE": "0.2", "FORK_APP_EXIT_S": "4"}
    if why == "hook":
        quick["FORK_APP_HANG_ON_STOP"] = "1"
    with WorkerCommand(harness.dsn, app=APP, **quick) as command:
        job = await harness.lw.submit("nap_in_executor" if why == "thread" else "wait")
        await wait_until(lambda: saved_pids(harness, job))
        command.terminate()
        await wait_until(command.all_gone)
    assert harness.status(job) == "approved"


IMPATIENT = """
import time
from laneway.engine.process import deadline
deadline.EXIT_S = 0.5
ours = deadline.Deadline()
while True:
    ours.begin(0.0)
    time.sleep(0.02)
"""


def test_further_signals_do_not_postpone_the_deadline() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPATIENT], check=False, capture_output=True)
    assert ran.returncode == 1
    assert b"has not stopped in time" in ran.stderr
