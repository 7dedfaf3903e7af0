"""Heartbeats come from a separate process: they survive the handler and end with the worker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psutil
import pytest

from laneway import Context
from laneway.engine.lease.heartbeat import Heartbeat
from laneway.engine.lease.heartbeat_child import HUNG, LeaseRenewer, ReportWriter
from laneway.engine.lease.heartbeat_wire import Pair
from laneway.engine.process import spawned
from laneway.errors import DatabaseUnavailable
from laneway.store.leases import WriteResult
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until


async def test_handler_that_blocks_the_worker_for_three_leases_keeps_its_lease(
    harness: WorkerHarness,
) -> None:
    """A worker whose loop is blocked and one whose GIL is held, at the same time."""
    harness.lane("default", lease_seconds=2)
    with WorkerCommand(harness.dsn) as first, WorkerCommand(harness.dsn) as second:
        jobs = []
        for job_type in ("block_loop", "hold_gil"):
            # The second worker takes the second job, unless the first is quicker than its handler.
            jobs.append(await harness.lw.submit(job_type, {"seconds": 6.5}))
            await harness.running(jobs[-1])
        holder = uuid4()

        def taken_back() -> int:
            return int(
                harness.one("select reclaimed from laneway.run_watchdog(%s, 60, 100)", holder) or 0
            )

        while any(harness.status(job) == "running" for job in jobs):
            assert taken_back() == 0
            await asyncio.sleep(0.05)
        for job in jobs:
            ended = await harness.ended(job)
            assert (ended.status, ended.result, ended.attempt) == ("completed", "still mine", 1)
            assert ended.finished_at is not None
            assert ended.claimed_at is not None
            assert (ended.finished_at - ended.claimed_at).total_seconds() > 6
        for command in (first, second):
            command.terminate()
            await wait_until(command.all_gone)


async def test_heartbeat_process_that_hangs_as_it_starts_is_replaced(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> int:
        return ctx.attempt

    monkeypatch.setattr("laneway.engine.lease.heartbeat.READY_S", 0.2)
    monkeypatch.setattr(Heartbeat, "child", "tests.engine.hanging_heartbeat")
    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await wait_until(lambda: "not ready after" in caplog.text)
    monkeypatch.undo()
    assert await submitted.wait(60) == 1


async def test_heartbeat_process_that_dies_is_replaced_before_a_lease_is_lost(
    harness: WorkerHarness,
) -> None:
    let_go = asyncio.Event()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> int:
        await let_go.wait()
        return ctx.attempt

    harness.lane("default", lease_seconds=4)
    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    old = worker.heartbeat.pid
    assert old is not None
    os.kill(old, signal.SIGKILL)
    await wait_until(lambda: worker.heartbeat.pid not in (None, old) and worker.heartbeat.is_ready)
    await wait_until(
        lambda: harness.one(
            "select extract(epoch from lease_until - claimed_at) > 8 from laneway.lease"
        )
    )
    let_go.set()
    assert await submitted.wait(60) == 1


async def test_frozen_heartbeat_process_is_replaced_and_job_keeps_its_attempt(
    harness: WorkerHarness,
) -> None:
    let_go = asyncio.Event()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> int:
        await let_go.wait()
        return ctx.attempt

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    frozen = worker.heartbeat.pid
    assert frozen is not None
    os.kill(frozen, signal.SIGSTOP)
    # It claims nothing whose lease would not be renewed.
    await wait_until(lambda: not worker.heartbeat.is_ready)
    await wait_until(
        lambda: worker.heartbeat.pid not in (None, frozen) and worker.heartbeat.is_ready
    )
    assert not psutil.pid_exists(frozen)
    let_go.set()
    assert await submitted.wait(60) == 1


async def test_nothing_is_claimed_while_renewals_do_not_get_through(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat process cannot log in; the worker's own connections can."""

    @harness.lw.handler("job")
    async def job(ctx: Context, naps: bool) -> int:
        if naps:
            await asyncio.Event().wait()
        return ctx.attempt

    harness.lane("default", lease_seconds=2)
    worker = await harness.start_worker()
    await wait_until(lambda: worker.heartbeat.is_ready)
    held = await harness.lw.submit("job", {"naps": True})
    await harness.running(held)
    refuse = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'laneway heartbeat' and datname = current_database()"
    )
    stop = asyncio.Event()

    async def cut_off() -> None:
        while not stop.is_set():
            harness.rows(refuse)
            await asyncio.sleep(0.01)

    cutting = asyncio.create_task(cut_off())
    try:
        await wait_until(lambda: not worker.heartbeat.is_ready)
        late = await harness.lw.submit("job", {"naps": False})
        (loop,) = worker.loops.values()
        assert await loop.run_once() is not None
        assert harness.status(late) == "approved"
    finally:
        stop.set()
        await cutting
    # Nothing is held any more that would have to be renewed: it finds out by itself.
    assert await late.wait(60) == 1


async def test_nothing_is_claimed_without_a_heartbeat_process(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    monkeypatch.setattr(Heartbeat, "child", "tests.engine.hanging_heartbeat")
    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    hung = await wait_until(lambda: worker.heartbeat.pid)
    (loop,) = worker.loops.values()
    assert await loop.run_once() is not None
    assert harness.status(submitted) == "approved"
    monkeypatch.undo()
    os.kill(hung, signal.SIGKILL)
    await submitted.wait(60)


async def test_while_no_heartbeat_process_can_be_started_leases_are_lost_in_time(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = asyncio.Event()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    harness.lane("default", lease_seconds=2)
    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job", max_retries=0)
    await harness.running(submitted)

    def refuse(*args: Any, **options: Any) -> Any:
        raise OSError("out of processes")

    monkeypatch.setattr(spawned, "Popen", refuse)
    pid = worker.heartbeat.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await wait_until(stopped.is_set)
    ended = await harness.ended(submitted)
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("failed", "WorkerLost")


async def test_heartbeat_process_ends_when_its_worker_is_killed(harness: WorkerHarness) -> None:
    with WorkerCommand(harness.dsn) as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: harness.rows("select 1 from laneway.progress"))
        (heartbeat,) = command.of("heartbeat_child")
        command.kill()
        await wait_until(lambda: not heartbeat.is_running() or heartbeat.status() == "zombie")
        assert harness.status(job) == "running"


async def test_signals_to_the_whole_group_do_not_end_the_heartbeat(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    await wait_until(lambda: worker.heartbeat.is_ready)
    assert worker.heartbeat.pid is not None
    heartbeat = psutil.Process(worker.heartbeat.pid)
    for number in (signal.SIGINT, signal.SIGTERM):
        heartbeat.send_signal(number)
    await (await harness.lw.submit("job")).wait(60)
    assert heartbeat.is_running()
    assert worker.heartbeat.pid == heartbeat.pid


async def test_worker_that_is_stopped_does_not_keep_its_leases(harness: WorkerHarness) -> None:
    """SIGSTOP the worker and only it: its heartbeat process must not speak for it."""

    @harness.lw.handler("wait")
    async def wait(ctx: Context) -> int:
        return ctx.attempt

    harness.lane("default", lease_seconds=2)
    with WorkerCommand(harness.dsn) as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: harness.rows("select 1 from laneway.progress"))
        os.kill(command.process.pid, signal.SIGSTOP)
        await harness.start_worker()
        assert await job.wait(60) == 2
        os.kill(command.process.pid, signal.SIGCONT)
        command.terminate()
        await wait_until(command.all_gone)
    ended = await job.get()
    assert [a.outcome for a in ended.attempts] == ["lost", "completed"]


async def test_worker_silent_for_longer_than_its_loop_timeout_loses_its_leases(
    harness: WorkerHarness,
) -> None:
    """Also without a supervisor that would kill it."""

    @harness.lw.handler("block_loop")
    async def block_loop(ctx: Context, seconds: float) -> int:
        return ctx.attempt

    harness.lane("default", lease_seconds=2)
    with WorkerCommand(harness.dsn, LANEWAY_LOOP_TIMEOUT="1") as command:
        job = await harness.lw.submit("block_loop", {"seconds": 60})
        await harness.running(job)
        await harness.start_worker()
        assert await job.wait(60) == 2
        command.kill()
        await wait_until(command.all_gone)


# -- the renewer by itself ------------------------------------------------------------------------


class Script:
    """Renews with configured answers."""

    def __init__(self) -> None:
        self.answers: list[WriteResult] = []
        self.error: Exception | None = None
        self.during: Callable[[], None] = lambda: None

    def renew(self, pairs: list[Pair], job_ids: list[bytes], within_s: float) -> list[WriteResult]:
        self.during()
        if self.error is not None:
            raise self.error
        return self.answers


class Notes(ReportWriter):
    def __init__(self) -> None:
        self.reports: list[tuple[str, object, int]] = []

    def report(self, kind: str, seq: object = 0, attempt: int = 0) -> None:
        self.reports.append((kind, seq, attempt))


class ClockedRenewer:
    """A renewer whose clock the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.script, self.notes = Script(), Notes()
        self.renewer = LeaseRenewer(self.script.renew, 1 / 3, self.notes, clock=lambda: self.now)

    def lost(self) -> list[Pair]:
        """The leases given up at this time."""
        self.notes.reports.clear()
        self.renewer.give_up_lost()
        return [(seq, attempt) for _, seq, attempt in self.notes.reports]  # type: ignore[misc]


@pytest.fixture
def clocked() -> ClockedRenewer:
    return ClockedRenewer()


def test_renewed_lease_is_due_after_a_third_of_it(clocked: ClockedRenewer) -> None:
    clocked.renewer.hold([(1, 1)], 30.0)
    clocked.now += 10
    clocked.renewer.renew([(1, 1)])
    assert clocked.notes.reports == []
    clocked.now += 7
    assert clocked.renewer.due() == []
    clocked.now += 3
    assert clocked.renewer.due() == [(1, 1)]
    clocked.now += 19.9
    assert clocked.lost() == []
    clocked.now += 0.1
    assert clocked.lost() == [(1, 1)]


def test_fenced_attempt_is_reported_and_no_longer_renewed(clocked: ClockedRenewer) -> None:
    clocked.renewer.hold([(1, 1), (2, 1)], 30.0)
    clocked.script.answers = [WriteResult(1, 1, "fenced")]
    clocked.renewer.renew([(1, 1), (2, 1)])
    assert clocked.notes.reports == [("fenced", 1, 1)]
    clocked.now += 10
    assert clocked.renewer.due() == [(2, 1)]


def test_cancelled_attempt_is_reported_and_still_renewed(clocked: ClockedRenewer) -> None:
    clocked.renewer.hold([(1, 1)], 30.0)
    clocked.now += 10
    clocked.script.answers = [WriteResult(1, 1, "cancel_requested")]
    clocked.renewer.renew([(1, 1)])
    assert clocked.notes.reports == [("cancel_requested", 1, 1)]
    clocked.now += 29
    assert clocked.lost() == []
    assert clocked.renewer.due() == [(1, 1)]


@pytest.mark.parametrize("trouble", ["busy", "unavailable"])
def test_lease_that_could_not_be_renewed_is_retried_and_lost_in_time(
    clocked: ClockedRenewer, trouble: str
) -> None:
    clocked.renewer.hold([(1, 1)], 30.0)
    clocked.now += 10
    if trouble == "busy":
        clocked.script.answers = [WriteResult(1, 1, "busy")]
    else:
        clocked.script.error = DatabaseUnavailable("away")
    clocked.renewer.renew([(1, 1)])
    clocked.now += 0.2
    assert clocked.renewer.due() == [(1, 1)]
    clocked.now += 19.7
    assert clocked.lost() == []
    clocked.now += 0.1
    assert clocked.lost() == [(1, 1)]
    assert clocked.renewer.due() == []


def test_forgotten_claim_is_not_brought_back_by_an_answer(clocked: ClockedRenewer) -> None:
    clocked.renewer.hold([(1, 1)], 30.0)
    clocked.script.during = lambda: clocked.renewer.forget([(1, 1)])
    clocked.renewer.renew([(1, 1)])
    clocked.now += 3600
    assert clocked.renewer.due() == []
    assert clocked.lost() == []


HANGS = """
import threading
from laneway.engine.lease import heartbeat_child
from laneway.errors import DatabaseUnavailable

heartbeat_child.HANGS_S = 0.2
calls = []

def renew(pairs, job_ids, within_s):
    calls.append(pairs)
    if len(calls) == 1:
        renewer.forget(pairs)
        raise DatabaseUnavailable("down")
    threading.Event().wait()

renewer = heartbeat_child.LeaseRenewer(renew, 1 / 3, heartbeat_child.ReportWriter())
renewer.hold([(1, 1)], 30.0)
renewer.beat_now()
threading.Thread(target=renewer.run, daemon=True).start()
renewer.watch()
"""


def test_heartbeat_process_that_hangs_without_leases_is_replaced() -> None:
    """Else the worker would claim nothing any more: it cannot know that it may again."""
    ran = subprocess.run([sys.executable, "-c", HANGS], check=False, timeout=60)
    assert ran.returncode == HUNG


def test_heartbeat_process_loads_the_driver_only_when_it_renews() -> None:
    """A worker that ends soon pays for no driver."""
    code = (
        "import sys; from laneway.engine.lease.heartbeat_child import database_renewer;"
        "database_renewer({'dsn': '', 'options': {}}); print('psycopg' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "False\n"
