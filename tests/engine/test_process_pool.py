"""Handlers in child processes: real ones, really killed; only the database is not there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import psutil
import pytest
import uvloop

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.engine.child import process_pool
from laneway.engine.child.process_pool import ProcessPool
from laneway.engine.registry import Registry, make_handler
from laneway.engine.run.attempt import Run, StopReason
from laneway.engine.run.handler_requests import HandlerRequests
from laneway.engine.run.local_channel import LoopChannel
from laneway.errors import StaleAttempt
from laneway.store.leases import Assignment, Report, Verdict
from tests.engine import pool_handlers

DEADLINE_S = 60.0
REGISTRY: Registry = pool_handlers.app.registry


class FakeReporter:
    """Records calls in order, and stores when the test allows it."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.lines: list[str] = []
        self.events: list[str] = []
        self.may_store = asyncio.Event()
        self.may_store.set()
        self.is_stale = False
        self._waiters: dict[str, asyncio.Event] = {}

    def report(self, claim: Claim, new: Report) -> None:
        self.reports.append(new)

    def line(self, claim: Claim, number: int, level: str, message: str) -> None:
        self.lines.append(f"{number} {level} {message}")
        self._happened(message)

    async def flush(self, claim: Claim) -> None:
        self._happened("asked to store")
        await self.may_store.wait()
        if self.is_stale:
            raise StaleAttempt("attempt 1 is over")
        self._happened("stored")

    def _happened(self, event: str) -> None:
        self.events.append(event)
        self._waiter(event).set()

    async def until(self, event: str) -> None:
        await self._waiter(event).wait()

    def _waiter(self, event: str) -> asyncio.Event:
        return self._waiters.setdefault(event, asyncio.Event())


class FakeRequests:
    """Answers only what was always asked: is it stored?"""

    has_database = True

    def __init__(self, reporter: FakeReporter) -> None:
        self.reporter = reporter

    async def answer(self, run: Run, what: str, body: dict[str, Any]) -> None:
        assert what == "flush"
        await self.reporter.flush(run.claim)


class Attempt:
    """A run of a handler in a pool, as the executor would have it."""

    def __init__(
        self,
        pool: ProcessPool,
        job_type: str,
        payload: dict[str, Any] | None = None,
        *,
        registry: Registry = REGISTRY,
        checkpoint: Any = None,
    ) -> None:
        claim = Claim(1, uuid4(), 1)
        kept = None if checkpoint is None else json.dumps(checkpoint)
        text = json.dumps(payload or {}, ensure_ascii=False)
        given = Assignment(claim, 0, job_type, text, kept, 0, True)
        self.run = Run(given, registry[job_type], "default")
        self.pool = pool
        self.reporter = FakeReporter()
        self.line = LoopChannel(
            self.run,
            cast(HandlerRequests, FakeRequests(self.reporter)),
            None,
            None,
            SimpleNamespace(),
            DEFAULT_LIMITS,
        )
        self.task: asyncio.Task[Verdict | None] | None = None

    async def verdict(self) -> Verdict | None:
        if self.task is None:
            self.start()
        assert self.task is not None
        async with asyncio.timeout(DEADLINE_S):
            return await self.task

    def start(self) -> Attempt:
        self.task = asyncio.create_task(self.pool.run(self.run, self.line))
        return self

    async def until(self, event: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self.reporter.until(event)

    def stop(self, reason: StopReason = "cancel") -> None:
        self.run.stop_reason = reason
        assert self.run.stopper is not None
        self.run.stopper()

    async def result(self) -> Any:
        verdict = await self.verdict()
        assert verdict is not None
        assert verdict.error is None
        assert (verdict.kind, verdict.claim) == ("finish", self.run.claim)
        assert verdict.result is not None
        return json.loads(verdict.result)

    async def failure(self) -> dict[str, str]:
        verdict = await self.verdict()
        assert verdict is not None
        assert (verdict.kind, verdict.result) == ("fail", None)
        assert verdict.error is not None
        return cast(dict[str, str], json.loads(verdict.error))


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool(2, Settings.load())
    try:
        yield pool
    finally:
        pids = pool.pids
        await pool.close()
        assert pool.pids == []
        assert not any(psutil.pid_exists(pid) for pid in pids)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 -- the process table has no event to wait for
            await asyncio.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        # Process 1 reaps an orphan in its own time.
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# How a handler ends ---------------------------------------------------------------------------


async def test_result_comes_back_from_another_process(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "echo", {"value": ["ä", 1, None]})
    result = await attempt.result()
    assert result["value"] == ["ä", 1, None]
    assert result["pid"] in pool.pids
    assert (result["attempt"], result["id"]) == (1, str(attempt.run.claim.job_id))


async def test_error_comes_back_with_its_traceback(pool: ProcessPool) -> None:
    error = await Attempt(pool, "fail", {"how": "error"}).failure()
    assert (error["type"], error["message"]) == ("ValueError", "no such page")
    assert "pool_handlers.py" in error["traceback"]
    assert 'raise ValueError("no such page")' in error["traceback"]


async def test_exception_that_cannot_be_described_still_fails_its_job(
    pool: ProcessPool,
) -> None:
    assert (await Attempt(pool, "fail", {"how": "mute"}).failure())["type"] == "Mute"
    assert (await Attempt(pool, "fail", {"how": "exit"}).failure())["type"] == "SystemExit"
    assert len(pool.pids) == 1


async def test_retry_snooze_and_cancel_mean_the_same_as_in_a_thread(
    pool: ProcessPool,
) -> None:
    kinds = {}
    for how in ("retry", "snooze", "cancel"):
        verdict = await Attempt(pool, "fail", {"how": how}).verdict()
        assert verdict is not None
        message = verdict.error and json.loads(verdict.error)["message"]
        kinds[how] = verdict.kind, verdict.delay_s, message
    assert kinds == {
        "retry": ("fail", 7.0, "busy"),
        "snooze": ("snooze", 9.0, None),
        "cancel": ("cancel", None, "nothing to do"),
    }


async def test_payload_the_handler_cannot_take_is_given_up(pool: ProcessPool) -> None:
    verdict = await Attempt(pool, "hog", {"mb": "many"}).verdict()
    assert verdict is not None
    assert verdict.kind == "giveup"
    assert "payload.mb" in (verdict.error or "")


async def test_result_that_is_too_large_fails_the_job(pool: ProcessPool) -> None:
    big = "x" * (DEFAULT_LIMITS.max_bytes - 20)
    verdict = await Attempt(pool, "echo", {"value": big}).verdict()
    assert verdict is not None
    assert verdict.kind == "giveup"
    assert json.loads(verdict.error or "")["type"] == "InvalidResult"


async def test_mebibyte_goes_both_ways(pool: ProcessPool) -> None:
    big = "é" * (DEFAULT_LIMITS.max_bytes // 2 - 500)
    assert (await Attempt(pool, "echo", {"value": big}).result())["value"] == big


# What a handler says --------------------------------------------------------------------------


async def test_progress_checkpoint_and_log_lines_are_passed_on(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "reporting", checkpoint={"page": 1})
    assert await attempt.result() == [{"page": 1}, {"page": 2}]
    merged: dict[str, Any] = {}
    for report in attempt.reporter.reports:
        assert report.claim == attempt.run.claim
        merged |= {name: value for name, value in report._asdict().items() if value is not None}
    del merged["claim"]
    assert merged == {
        "stage": "one",
        "done": 3.0,
        "total": 4.0,
        "message": "half",
        "checkpoint": '{"page":2}',
    }
    assert attempt.reporter.lines == ["1 warning a \ufffd line", "2 info saved"]


async def test_save_returns_only_when_the_checkpoint_is_stored(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "reporting")
    attempt.reporter.may_store.clear()
    attempt.start()
    await attempt.until("asked to store")
    assert attempt.reporter.reports[-1].checkpoint is not None
    await Attempt(pool, "echo").result()
    attempt.reporter.may_store.set()
    await attempt.result()
    assert attempt.reporter.events[1:] == ["asked to store", "stored", "saved"]


async def test_save_in_an_attempt_that_is_over_ends_it_without_a_verdict(
    pool: ProcessPool,
) -> None:
    attempt = Attempt(pool, "reporting")
    attempt.reporter.is_stale = True
    assert await attempt.verdict() is None
    assert "saved" not in attempt.reporter.events
    assert len(pool.pids) == 1


async def test_tight_loop_of_progress_is_merged_but_its_end_is_stored(
    pool: ProcessPool,
) -> None:
    attempt = Attempt(pool, "chatter", {"times": 20_000})
    await attempt.result()
    assert len(attempt.reporter.reports) < 2_000
    assert attempt.reporter.reports[-1].done == 20_000


async def test_track_continues_after_the_last_item_stored(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "resume", checkpoint={"_tracked": {"items": 3}})
    assert await attempt.result() == [3, 4]
    assert attempt.reporter.events == ["asked to store", "stored"] * 2
    assert attempt.reporter.reports[-1].checkpoint == '{"_tracked":{"items":5}}'


async def test_async_handlers_have_one_loop_and_leave_no_tasks_in_it(pool: ProcessPool) -> None:
    first = await Attempt(pool, "async_echo", {"value": 1}).result()
    attempt = Attempt(pool, "async_echo", {"value": 2})
    second = await attempt.result()
    assert first == {"value": 1, "same_loop": True, "pid": first["pid"], "tasks_done": [False]}
    assert second == {**first, "value": 2, "tasks_done": [False, True]}
    assert attempt.reporter.reports[-1].checkpoint == '{"seen":2}'


async def test_output_of_a_child_goes_to_the_workers_stderr(
    pool: ProcessPool, capfd: pytest.CaptureFixture[str]
) -> None:
    await Attempt(pool, "talking").result()
    out, err = capfd.readouterr()
    assert out == ""
    assert "written to stdout job_id=" in err
    assert "written to stderr job_id=" in err


# How a child dies -----------------------------------------------------------------------------


async def test_crash_fails_its_own_job_only(pool: ProcessPool) -> None:
    neighbour = Attempt(pool, "patient").start()
    await neighbour.until("waiting")
    for how, message in (
        ("exit", "the child process exited with code 3"),
        ("segv", "the child process was killed by SIGSEGV"),
        ("kill", "the child process was killed by SIGKILL"),
        ("hang_up", "the child process exited with code 1"),
    ):
        attempt = Attempt(pool, "crash", {"how": how})
        failure = await attempt.failure()
        assert (failure["type"], failure["message"]) == ("ChildDied", message)
        # Among what it wrote to stderr as it went: the two come by different ways.
        assert "about to crash" in attempt.reporter.events
    neighbour.stop()
    assert await neighbour.verdict() is None
    assert (await Attempt(pool, "echo").result())["pid"] in pool.pids


async def test_memory_beyond_the_limit_is_an_error_of_the_job(pool: ProcessPool) -> None:
    assert await Attempt(pool, "hog", {"mb": 16}).result() == 16 << 20
    (first,) = pool.pids
    error = await Attempt(pool, "hog", {"mb": 100}).failure()
    assert error["type"] == "MemoryError"
    assert error["message"] == "the handler needs more than its memory_mb=64"
    assert await Attempt(pool, "hog", {"mb": 16}).result() == 16 << 20
    await until(lambda: first not in pool.pids)


async def test_idle_child_that_died_costs_no_attempt(pool: ProcessPool) -> None:
    first = (await Attempt(pool, "echo").result())["pid"]
    os.kill(first, signal.SIGSTOP)
    attempt = Attempt(pool, "echo").start()
    await until(lambda: attempt.run.stopper is not None)
    os.kill(first, signal.SIGKILL)
    assert (await attempt.result())["pid"] != first


async def test_group_signals_reach_programs_of_job_but_not_job(
    pool: ProcessPool,
) -> None:
    assert await Attempt(pool, "signals").result() == "SIGTERM"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_children_die_with_a_worker_that_is_killed(tmp_path: Path, loop: str) -> None:
    worker = _script(
        tmp_path,
        f"""
        from tests.engine.test_process_pool import *
        async def main():
            pool = ProcessPool(3, Settings.load())
            await Attempt(pool, "echo").result()
            first, second = Attempt(pool, "busy").start(), Attempt(pool, "patient").start()
            await first.until("busy")
            await second.until("waiting")
            print(json.dumps(pool.pids), flush=True)
            await asyncio.Event().wait()
        if __name__ == "__main__":
            {loop}.run(main())
        """,
    )
    assert worker.stdout is not None
    pids = json.loads(await asyncio.to_thread(worker.stdout.readline))
    assert len(pids) == 2  # the idle one was used again
    assert not any(is_gone(pid) for pid in pids)
    worker.kill()
    worker.communicate()
    await until(lambda: all(is_gone(pid) for pid in pids))


# How a handler is stopped ---------------------------------------------------------------------


@pytest.mark.parametrize("job_type", ["patient", "tracking"])
async def test_plain_handler_stops_at_its_next_call(pool: ProcessPool, job_type: str) -> None:
    attempt = Attempt(pool, job_type).start()
    await attempt.until("waiting" if job_type == "patient" else "tracking")
    pids = pool.pids
    attempt.stop()
    assert await attempt.verdict() is None
    await Attempt(pool, "echo").result()
    assert pool.pids == pids


async def test_async_handler_is_cancelled_and_may_tidy_up(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "async_patient").start()
    await attempt.until("waiting")
    attempt.stop("timeout")
    assert await attempt.verdict() is None
    assert attempt.reporter.events == ["waiting", "tidied up"]
    assert (await Attempt(pool, "async_echo").result())["pid"] in pool.pids


async def test_handler_that_finishes_all_the_same_keeps_its_result(
    pool: ProcessPool,
) -> None:
    attempt = Attempt(pool, "stubborn_finish").start()
    await attempt.until("waiting")
    attempt.stop()
    assert await attempt.result() == "done all the same"


@pytest.mark.usefixtures("new_interpreters")
async def test_job_stopped_before_its_child_is_up_never_starts(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    # Each interpreter waits until the test opens the gate.
    (tmp_path / "sitecustomize.py").write_text(f"open({str(gate)!r}).close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    attempt = Attempt(pool, "reporting").start()
    await until(lambda: bool(pool.pids))
    attempt.stop()
    await asyncio.to_thread(gate.write_text, "")
    assert await attempt.verdict() is None
    assert attempt.reporter.events == []
    late = Attempt(pool, "reporting")
    late.run.stop_reason = "shutdown"
    assert await late.verdict() is None


async def test_handler_that_holds_the_gil_is_killed_with_its_child(
    pool: ProcessPool,
) -> None:
    attempt = Attempt(pool, "busy").start()
    await attempt.until("busy")
    (pid,) = pool.pids
    attempt.stop()
    pool.kill(attempt.run)
    assert await attempt.verdict() is None
    assert is_gone(pid)
    assert (await Attempt(pool, "echo").result())["pid"] != pid


async def test_killing_a_child_kills_the_programs_it_started(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "forking").start()
    await until(lambda: bool(attempt.reporter.events))
    program = int(attempt.reporter.events[0])
    assert not is_gone(program)
    attempt.stop()
    pool.kill(attempt.run)
    assert await attempt.verdict() is None
    await until(lambda: is_gone(program))


async def test_cancelled_run_leaves_no_child(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "patient").start()
    await attempt.until("waiting")
    (pid,) = pool.pids
    assert attempt.task is not None
    attempt.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt.task
    await until(lambda: is_gone(pid))


async def test_close_ends_all_children() -> None:
    pool = ProcessPool(3, Settings.load())
    await Attempt(pool, "echo").result()
    attempts = [Attempt(pool, job_type).start() for job_type in ("busy", "patient")]
    await attempts[0].until("busy")
    await attempts[1].until("waiting")
    starting = Attempt(pool, "echo").start()
    await until(lambda: starting.run.stopper is not None)
    pids = pool.pids
    async with asyncio.timeout(DEADLINE_S):
        await pool.close()
    assert all(is_gone(pid) for pid in pids)
    assert [await attempt.verdict() for attempt in (*attempts, starting)] == [None] * 3
    assert await Attempt(pool, "echo").verdict() is None
    assert pool.pids == []


# Which child runs what ------------------------------------------------------------------------


async def test_child_serves_the_next_job_too(pool: ProcessPool) -> None:
    pids = {(await Attempt(pool, "echo").result())["pid"] for _ in range(3)}
    assert pids == set(pool.pids)
    assert len(pids) == 1


async def test_jobs_at_the_same_time_have_a_child_each(pool: ProcessPool) -> None:
    attempts = [Attempt(pool, "stubborn_finish").start() for _ in range(8)]
    for attempt in attempts:
        await attempt.until("waiting")
    assert len(pool.pids) == 8
    for attempt in attempts:
        attempt.stop()
        assert await attempt.result() == "done all the same"


async def test_another_memory_limit_needs_another_child_within_the_size() -> None:
    pool = ProcessPool(1, Settings.load())
    first = (await Attempt(pool, "echo").result())["pid"]
    second = await Attempt(pool, "limited_echo").result()
    await until(lambda: pool.pids == [second])
    assert await Attempt(pool, "limited_echo").result() == second != first
    await pool.close()


async def test_child_is_replaced_after_many_jobs() -> None:
    pool = ProcessPool(2, Settings.load(max_jobs_per_child=2))
    pids = [(await Attempt(pool, "echo").result())["pid"] for _ in range(3)]
    assert pids[0] == pids[1] != pids[2]
    await pool.close()


async def test_idle_children_beyond_a_few_go(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pool, "IDLE_S", 0.0)
    monkeypatch.setattr(process_pool, "KEPT_IDLE", 1)
    attempts = [Attempt(pool, "stubborn_finish").start() for _ in range(2)]
    for attempt in attempts:
        await attempt.until("waiting")
    for attempt in attempts:
        attempt.stop()
        await attempt.result()
    await until(lambda: len(pool.pids) == 1)


async def test_on_start_and_on_stop_run_once_in_each_child(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed = tmp_path / "freed"
    monkeypatch.setenv("POOL_TEST_FREED", str(freed))
    pid, *loaded = await Attempt(pool, "resources").result()
    assert loaded == [pid]
    assert await Attempt(pool, "resources").result() == [pid, pid]
    await pool.close()
    assert freed.read_text(encoding="utf-8") == f"[{pid}]\n"


async def test_child_sees_the_workers_modules_and_none_of_its_sockets(
    pool: ProcessPool,
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.set_inheritable(True)
        inode = os.readlink(f"/proc/self/fd/{theirs.fileno()}")
        seen = await Attempt(pool, "environment").result()
    assert inode not in seen.pop("files")
    assert seen == {
        "cwd": os.getcwd(),
        "path": sys.path,
        "python_path": os.environ.get("PYTHONPATH"),
        "is_leader": True,
    }


# When a child cannot start --------------------------------------------------------------------


async def test_error_of_unimportable_handler_has_remedy(pool: ProcessPool) -> None:
    error = await Attempt(pool, "hidden", registry=pool_handlers.hidden()).failure()
    assert error["type"] == "ConfigError"
    assert error["message"] == (
        "handler 'hidden' cannot be found by a child process: define it at module level"
    )


async def test_failing_on_start_fails_the_job_and_the_child_goes(pool: ProcessPool) -> None:
    attempt = Attempt(pool, "broken_start", registry=pool_handlers.broken.registry)
    error = await attempt.failure()
    assert (error["type"], error["message"]) == ("ConnectionError", "the model is not there")
    await until(lambda: pool.pids == [])


async def test_module_that_cannot_be_imported_is_not_tried_again_at_once(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pool, "FIRST_BACKOFF_S", 1000.0)
    monkeypatch.setattr(process_pool, "LONGEST_BACKOFF_S", 1000.0)
    (tmp_path / "ruined_handlers.py").write_text("raise OSError('no disk')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def ruined(ctx: object) -> None: ...

    ruined.__module__ = "ruined_handlers"
    registry = Registry()
    registry.add(make_handler("ruined", ruined, isolation="process"))
    error = await Attempt(pool, "ruined", registry=registry).failure()
    assert (error["type"], error["message"]) == ("OSError", "no disk")
    assert "ruined_handlers.py" in error["traceback"]
    # Others are not kept waiting, and a job that waits can be stopped.
    waiting = Attempt(pool, "ruined", registry=registry).start()
    await Attempt(pool, "echo").result()
    assert waiting.task is not None
    assert not waiting.task.done()
    waiting.stop()
    assert await waiting.verdict() is None


MAIN = """
    from tests.engine.test_process_pool import *
    app = SimpleNamespace(registry=Registry())
    def fn(ctx, n: int) -> list:
        return [__name__, n + 1]
    app.registry.add(make_handler("of_main", fn, isolation="process"))
    async def main():
        pool = ProcessPool(1, Settings.load())
        verdict = await Attempt(pool, "of_main", {"n": 1}, registry=app.registry).verdict()
        print(verdict.result or verdict.error, flush=True)
        await pool.close()
"""


async def test_handlers_of_the_main_script_are_found(tmp_path: Path) -> None:
    start = '    if __name__ == "__main__":\n        asyncio.run(main())\n'
    script = _script(tmp_path, MAIN + start)
    out, _ = await asyncio.to_thread(script.communicate)
    assert json.loads(out) == ["__mp_main__", 2]


async def test_main_script_without_guard_starts_no_workers_in_children(
    tmp_path: Path,
) -> None:
    script = _script(tmp_path, MAIN + "    asyncio.run(main())\n")
    out, _ = await asyncio.to_thread(script.communicate)
    assert '`if __name__ == "__main__":`' in json.loads(out)["message"]


# The event loop -------------------------------------------------------------------------------


def test_all_this_works_on_uvloop() -> None:
    async def work() -> None:
        pool = ProcessPool(2, Settings.load())
        big = "é" * (DEFAULT_LIMITS.max_bytes // 2 - 500)
        assert (await Attempt(pool, "echo", {"value": big}).result())["value"] == big
        assert (await Attempt(pool, "crash", {"how": "exit"}).failure())["type"] == "ChildDied"
        busy = Attempt(pool, "busy").start()
        await busy.until("busy")
        busy.stop()
        pool.kill(busy.run)
        assert await busy.verdict() is None
        await Attempt(pool, "echo").result()
        await pool.close()
        assert pool.pids == []

    uvloop.run(work())


async def test_child_that_sends_invalid_messages_is_killed(pool: ProcessPool) -> None:
    error = await Attempt(pool, "babble").failure()
    assert error["type"] == "ChildDied"
    assert pool.pids == []


async def test_job_given_to_a_child_that_spoke_nonsense_before_gets_another(
    pool: ProcessPool, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    child = await Attempt(pool, "babble_at_signal", {"path": str(written)}).result()
    os.kill(child, signal.SIGUSR1)
    await until(written.exists)
    assert (await Attempt(pool, "echo").result())["pid"] != child
    assert child not in pool.pids


def _script(tmp_path: Path, text: str) -> subprocess.Popen[str]:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
