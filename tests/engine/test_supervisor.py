"""N worker processes under one parent: the dead are replaced, the hanging killed, all end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from laneway import JobHandle
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until

WORKER = "laneway worker"


def pid_of(harness: WorkerHarness, job: JobHandle) -> int:
    """The process that runs the job, by what its handler saved in this attempt."""
    rows = harness.rows(
        "select p.checkpoint from laneway.progress p join laneway.lease l using (seq, attempt)"
        " where seq = %s",
        harness.seq(job),
    )
    return int(rows[0][0]) if rows else 0


async def test_killed_child_is_replaced_and_its_jobs_released_at_once(
    harness: WorkerHarness,
) -> None:
    """The lease is an hour: only the supervisor can have given them back."""
    harness.lane("default", lease_seconds=3600)
    with WorkerCommand(harness.dsn, "--processes=2") as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: pid_of(harness, job))
        victim = pid_of(harness, job)
        await wait_until(lambda: len(command.of(WORKER)) == 2)
        assert victim in {child.pid for child in command.of(WORKER)}
        os.kill(victim, signal.SIGKILL)
        await wait_until(lambda: pid_of(harness, job) not in (0, victim))
        await wait_until(lambda: len({c.pid for c in command.of(WORKER)} - {victim}) == 2)
        again = await job.get()
        assert (again.attempt, again.retries) == (2, 1)
        assert again.attempts[0].outcome == "lost"
        assert again.attempts[0].error is not None
        assert "SIGKILL" in again.attempts[0].error.message
        await wait_until(command.terminate_again)
    assert harness.status(job) == "approved"
    assert harness.holds_nothing()


async def test_child_whose_loop_hangs_is_killed_and_only_the_culprit_charged(
    harness: WorkerHarness,
) -> None:
    with WorkerCommand(harness.dsn, "--processes=1", LANEWAY_LOOP_TIMEOUT="3") as command:
        others = [await harness.lw.submit("wait") for _ in range(3)]
        await wait_until(lambda: all(pid_of(harness, other) for other in others))
        hanging = pid_of(harness, others[0])
        culprit = await harness.lw.submit("hang", max_retries=0)
        ended = await harness.ended(culprit)
        assert ended.error is not None
        assert (ended.status, ended.error.type) == ("failed", "WorkerLost")
        assert "blocked the event loop" in ended.error.message
        await wait_until(lambda: all(pid_of(harness, o) not in (0, hanging) for o in others))
        for other in others:
            again = await other.get()
            assert (again.attempt, again.retries) == (2, 0)
            assert again.attempts[0].outcome == "lost"
        await wait_until(command.terminate_again)
    assert harness.holds_nothing()


async def test_sigterm_drains_even_if_slow_and_sent_to_the_whole_group(
    harness: WorkerHarness,
) -> None:
    """As a service manager does it: every process of the group gets the signal."""
    with WorkerCommand(harness.dsn, "--processes=2", LANEWAY_LOOP_TIMEOUT="2") as command:
        jobs = [await harness.lw.submit("nap", {"seconds": 3.0}) for _ in range(4)]
        for job in jobs:
            await harness.running(job)
        for process in command.tree():
            # One without a job ends as soon as it has its signal, and its heartbeat with it.
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        command.terminate()
        late = await harness.lw.submit("pid")
        await wait_until(command.all_gone)
    assert command.process.returncode == 0
    for job in jobs:
        ended = await job.get()
        assert (ended.status, ended.attempt) == ("completed", 1)
    assert harness.status(late) == "approved"
    assert harness.holds_nothing()


@pytest.mark.parametrize("options", [(), ("--processes=1",)], ids=["alone", "supervised"])
async def test_sighup_drains_like_sigterm(harness: WorkerHarness, options: tuple[str, ...]) -> None:
    with WorkerCommand(harness.dsn, *options) as command:
        job = await harness.lw.submit("nap", {"seconds": 1.0})
        await harness.running(job)
        command.tree()
        command.process.send_signal(signal.SIGHUP)
        await wait_until(command.all_gone)
    assert command.process.returncode == 0
    assert harness.status(job) == "completed"


async def test_second_sigterm_releases_at_once(harness: WorkerHarness) -> None:
    with WorkerCommand(harness.dsn, "--processes=2", LANEWAY_SHUTDOWN_GRACE="60") as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: pid_of(harness, job))
        await wait_until(command.terminate_again, timeout=60)
    assert harness.status(job) == "approved"
    after = await job.get()
    assert (after.retries, after.attempts[0].outcome) == (0, "released")


async def test_children_stop_when_their_supervisor_is_killed(harness: WorkerHarness) -> None:
    with WorkerCommand(harness.dsn, "--processes=2") as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: pid_of(harness, job))
        await wait_until(
            lambda: len(command.of(WORKER)) == 2 and len(command.of("heartbeat_child")) == 2
        )
        command.kill()
        await wait_until(command.all_gone)
    after = await job.get()
    assert (after.status, after.retries) == ("approved", 0)
    assert [a.outcome for a in after.attempts] == ["released"]
    assert harness.holds_nothing()


async def test_supervisor_ends_where_the_schema_is_missing(empty_dsn: str) -> None:
    with WorkerCommand(empty_dsn, "--processes=2") as command:
        await wait_until(command.all_gone)
        assert command.process.returncode == 5


async def test_unsupervised_worker_drains_on_sigterm_and_hurries_on_second(
    harness: WorkerHarness,
) -> None:
    with WorkerCommand(harness.dsn, LANEWAY_SHUTDOWN_GRACE="60") as command:
        short = await harness.lw.submit("nap", {"seconds": 1.0})
        long = await harness.lw.submit("wait")
        await wait_until(lambda: pid_of(harness, long))
        await harness.running(short)
        command.terminate()
        await wait_until(lambda: harness.status(short) == "completed")
        assert harness.status(long) == "running"
        command.terminate()
        await wait_until(command.all_gone)
    assert command.process.returncode == 0
    assert harness.status(long) == "approved"


EXITS = "import sys, time; open(sys.argv[1], 'a').write(f'{time.monotonic()}\\n')"
SUPERVISES = """
import sys
from laneway.config.settings import Settings
from laneway.engine.process.supervisor import Supervisor
sys.exit(Supervisor(sys.argv[1:], 1, None, Settings()).run())
"""


async def test_child_that_ends_before_it_works_is_not_replaced_at_once(tmp_path: Path) -> None:
    """Such as an application that calls sys.exit(0) as it is imported."""
    starts = tmp_path / "starts"
    starts.touch()
    child = [sys.executable, "-c", EXITS, str(starts)]
    with subprocess.Popen([sys.executable, "-c", SUPERVISES, *child]) as supervisor:
        try:
            await wait_until(lambda: len(starts.read_text().splitlines()) >= 2)
        finally:
            supervisor.terminate()
    first, second, *_ = map(float, starts.read_text().splitlines())
    assert second - first > 0.9


# Like a worker whose interpreter is stuck: its own deadline does not end it.
IGNORES = """
import os, pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
while True:
    signal.pause()
"""
KILLS_SOON = f"""
from laneway.engine.process import supervisor
supervisor.KILL_S = 0.5
{SUPERVISES}"""


async def test_child_that_ignores_the_stop_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    child = [sys.executable, "-c", IGNORES, str(started)]
    program = [sys.executable, "-c", KILLS_SOON, *child]
    environment = {**os.environ, "LANEWAY_SHUTDOWN_GRACE": "0.1"}
    with subprocess.Popen(program, env=environment) as supervisor:
        try:
            pid = int(await wait_until(lambda: started.exists() and started.read_text()))
            supervisor.terminate()
            await wait_until(lambda: supervisor.poll() is not None)
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        finally:
            supervisor.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(started.read_text()), signal.SIGKILL)


# Works until it is signalled, unless the file named first exists: then it cannot start.
WORKS_OR_EXITS = """
import json, os, pathlib, signal, sys, uuid
refused, starts, code = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
is_refused = refused.exists()
if not is_refused:
    out = int(os.environ["LANEWAY_SUPERVISOR_FDS"].split(",")[0])
    os.write(out, json.dumps({"worker": str(uuid.uuid4())}).encode() + b"\\n")
with open(starts, "a") as file:
    file.write(f"{os.getpid()} {'refused' if is_refused else 'works'}\\n")
if is_refused:
    sys.exit(code)
signal.pause()
"""


async def test_child_that_is_refused_ends_no_child_that_works(tmp_path: Path) -> None:
    await asyncio.gather(*(assert_refused_child_is_replaced(tmp_path, code) for code in (2, 4, 5)))


async def assert_refused_child_is_replaced(folder: Path, code: int) -> None:
    refused, starts = folder / f"refused {code}", folder / f"starts {code}"
    starts.touch()
    child = [sys.executable, "-c", WORKS_OR_EXITS, str(refused), str(starts), str(code)]
    two = SUPERVISES.replace(", 1, ", ", 2, ")

    def started(how: str) -> list[int]:
        lines = [line.split() for line in starts.read_text().splitlines()]
        return [int(pid) for pid, word in lines if word == how]

    with subprocess.Popen(
        [sys.executable, "-c", two, *child], stderr=subprocess.PIPE, text=True
    ) as supervisor:
        try:
            await wait_until(lambda: len(started("works")) == 2)
            kept, killed = started("works")
            refused.touch()
            os.kill(killed, signal.SIGKILL)
            await wait_until(lambda: started("refused"))
            refused.unlink()
            await wait_until(lambda: supervisor.poll() is not None or len(started("works")) == 3)
            assert supervisor.poll() is None
            assert psutil.pid_exists(kept)
        finally:
            supervisor.terminate()
            _, output = await asyncio.to_thread(supervisor.communicate)
    assert f"exit code {code}" in output
    assert ": retry in" in output
    assert supervisor.returncode == 0
