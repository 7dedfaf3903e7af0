"""`lw.sync.worker()`: a worker in its own thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from laneway import Laneway
from laneway.errors import DatabaseUnavailable, SchemaMismatch


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "laneway worker"]


def test_worker_runs_jobs_until_it_is_stopped(dsn: str) -> None:
    lw = Laneway(dsn)
    names: list[str] = []

    @lw.handler("note")
    async def note(ctx: object) -> None:
        names.append(threading.current_thread().name)

    worker = lw.sync.worker()
    for _ in range(2):
        worker.start()
        worker.start()  # runs already
        assert (worker.is_running, threads()) == (True, ["laneway worker"])
        lw.sync.submit("note").wait(60)
        worker.stop()
        worker.stop()
        assert (worker.is_running, threads()) == (False, [])
    lw.sync.close()
    assert names == ["laneway worker"] * 2


def test_worker_does_not_start_without_its_database(empty_dsn: str) -> None:
    nowhere = "postgresql://user@127.0.0.1:1/none"
    for dsn, trouble in ((nowhere, DatabaseUnavailable), (empty_dsn, SchemaMismatch)):
        worker = Laneway(dsn).sync.worker()
        with pytest.raises(trouble):
            worker.start()
        assert not worker.is_running
    assert threads() == []


def test_worker_may_be_switched_off(dsn: str) -> None:
    worker = Laneway(dsn, worker="off").sync.worker()
    worker.start()
    worker.stop()
    assert threads() == []


PROGRAM = """
import threading
from laneway import Laneway, SyncContext

lw = Laneway()
started = threading.Event()


@lw.handler("slow")
def slow(ctx: SyncContext) -> str:
    started.set()
    threading.Event().wait(0.5)
    return "done"


lw.sync.worker().start()
lw.sync.submit("slow")
started.wait(60)
"""


def test_end_of_program_lets_jobs_finish(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    with psycopg.connect(dsn, application_name="tests") as conn:
        found = conn.execute("select status, attempt, result from laneway.jobs_view").fetchall()
    assert found == [("completed", 1, "done")]
