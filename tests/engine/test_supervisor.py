"""N worker processes under one parent: the dead are replaced, the hanging killed, all end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from laneway import JobHandle
from tests.engine.crew import Crew
from tests.engine.workshop import Workshop, until

WORKER = "laneway worker"


def pid_of(shop: Workshop, job: JobHandle) -> int:
    """The process that runs the job, by what its handler saved in this attempt."""
    rows = shop.rows(
        "select p.checkpoint from laneway.progress p join laneway.lease l using (seq, attempt)"
        " where seq = %s",
        shop.seq(job),
    )
    return int(rows[0][0]) if rows else 0


async def test_killed_child_is_replaced_and_its_jobs_released_at_once(shop: Workshop) -> None:
    """The lease is an hour: only the supervisor can have given them back."""
    shop.lane("default", lease_seconds=3600)
    with Crew(shop.dsn, "--processes=2") as crew:
        job = await shop.lw.submit("wait")
        await until(lambda: pid_of(shop, job))
        victim = pid_of(shop, job)
        await until(lambda: len(crew.of(WORKER)) == 2)
        assert victim in {child.pid for child in crew.of(WORKER)}
        os.kill(victim, signal.SIGKILL)
        await until(lambda: pid_of(shop, job) not in (0, victim))
        await until(lambda: len({c.pid for c in crew.of(WORKER)} - {victim}) == 2)
        again = await job.get()
        assert (again.attempt, again.retries) == (2, 1)
        assert again.attempts[0].outcome == "lost"
        assert again.attempts[0].error is not None
        assert "SIGKILL" in again.attempts[0].error.message
        await until(crew.is_sent_away)
    assert shop.status(job) == "approved"
    assert shop.holds_nothing()


async def test_a_child_whose_loop_hangs_is_killed_and_only_the_culprit_charged(
    shop: Workshop,
) -> None:
    with Crew(shop.dsn, "--processes=1", LANEWAY_LOOP_TIMEOUT="3") as crew:
        others = [await shop.lw.submit("wait") for _ in range(3)]
        await until(lambda: all(pid_of(shop, other) for other in others))
        hanging = pid_of(shop, others[0])
        culprit = await shop.lw.submit("hang", max_retries=0)
        ended = await shop.ended(culprit)
        assert ended.error is not None
        assert (ended.status, ended.error.type) == ("failed", "WorkerLost")
        assert "blocked the event loop" in ended.error.message
        await until(lambda: all(pid_of(shop, o) not in (0, hanging) for o in others))
        for other in others:
            again = await other.get()
            assert (again.attempt, again.retries) == (2, 0)
            assert again.attempts[0].outcome == "lost"
        await until(crew.is_sent_away)
    assert shop.holds_nothing()


async def test_sigterm_drains_even_if_slow_and_sent_to_the_whole_group(
    shop: Workshop,
) -> None:
    """As a service manager does it: every process of the group gets the signal."""
    with Crew(shop.dsn, "--processes=2", LANEWAY_LOOP_TIMEOUT="2") as crew:
        jobs = [await shop.lw.submit("nap", {"seconds": 3.0}) for _ in range(4)]
        for job in jobs:
            await shop.running(job)
        for process in crew.tree():
            # One without a job ends as soon as it has its signal, and its heartbeat with it.
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        crew.terminate()
        late = await shop.lw.submit("pid")
        await until(crew.all_gone)
    assert crew.process.returncode == 0
    for job in jobs:
        ended = await job.get()
        assert (ended.status, ended.attempt) == ("completed", 1)
    assert shop.status(late) == "approved"
    assert shop.holds_nothing()


@pytest.mark.parametrize("options", [(), ("--processes=1",)], ids=["alone", "supervised"])
async def test_sighup_drains_like_sigterm(shop: Workshop, options: tuple[str, ...]) -> None:
    with Crew(shop.dsn, *options) as crew:
        job = await shop.lw.submit("nap", {"seconds": 1.0})
        await shop.running(job)
        crew.tree()
        crew.process.send_signal(signal.SIGHUP)
        await until(crew.all_gone)
    assert crew.process.returncode == 0
    assert shop.status(job) == "completed"


async def test_a_second_sigterm_releases_at_once(shop: Workshop) -> None:
    with Crew(shop.dsn, "--processes=2", LANEWAY_SHUTDOWN_GRACE="60") as crew:
        job = await shop.lw.submit("wait")
        await until(lambda: pid_of(shop, job))
        await until(crew.is_sent_away, timeout=60)
    assert shop.status(job) == "approved"
    after = await job.get()
    assert (after.retries, after.attempts[0].outcome) == (0, "released")


async def test_children_stop_when_their_supervisor_is_killed(shop: Workshop) -> None:
    with Crew(shop.dsn, "--processes=2") as crew:
        job = await shop.lw.submit("wait")
        await until(lambda: pid_of(shop, job))
        await until(lambda: len(crew.of(WORKER)) == 2 and len(crew.of("heartbeat_child")) == 2)
        crew.kill()
        await until(crew.all_gone)
    after = await job.get()
    assert (after.status, after.retries) == ("approved", 0)
    assert [a.outcome for a in after.attempts] == ["released"]
    assert shop.holds_nothing()


async def test_a_supervisor_ends_where_the_schema_is_missing(empty_dsn: str) -> None:
    with Crew(empty_dsn, "--processes=2") as crew:
        await until(crew.all_gone)
        assert crew.process.returncode == 5


async def test_unsupervised_worker_drains_on_sigterm_and_hurries_on_second(
    shop: Workshop,
) -> None:
    with Crew(shop.dsn, LANEWAY_SHUTDOWN_GRACE="60") as crew:
        short = await shop.lw.submit("nap", {"seconds": 1.0})
        long = await shop.lw.submit("wait")
        await until(lambda: pid_of(shop, long))
        await shop.running(short)
        crew.terminate()
        await until(lambda: shop.status(short) == "completed")
        assert shop.status(long) == "running"
        crew.terminate()
        await until(crew.all_gone)
    assert crew.process.returncode == 0
    assert shop.status(long) == "approved"


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
            await until(lambda: len(starts.read_text().splitlines()) >= 2)
        finally:
            supervisor.terminate()
    first, second, *_ = map(float, starts.read_text().splitlines())
    assert second - first > 0.9


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


@pytest.mark.parametrize("code", [2, 4, 5])
async def test_child_that_is_refused_ends_no_child_that_works(tmp_path: Path, code: int) -> None:
    refused, starts = tmp_path / "refused", tmp_path / "starts"
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
            await until(lambda: len(started("works")) == 2)
            kept, killed = started("works")
            refused.touch()
            os.kill(killed, signal.SIGKILL)
            await until(lambda: started("refused"))
            refused.unlink()
            await until(lambda: supervisor.poll() is not None or len(started("works")) == 3)
            assert supervisor.poll() is None
            assert psutil.pid_exists(kept)
        finally:
            supervisor.terminate()
            _, output = supervisor.communicate()
    assert f"exit code {code}" in output
    assert ": retry in" in output
    assert supervisor.returncode == 0
