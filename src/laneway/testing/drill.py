"""Crash drills: real workers of an application are killed and stopped, and the laws are checked.

with drill(lw, "app:lw") as run:
    worker = run.start_worker()
    job = lw.sync.submit("ingest", {"path": "a.pdf"})
    run.wait_for(job.id, "running")
    run.kill(worker)
    run.start_worker()
    job.wait(timeout=60)
    run.check()
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from uuid import UUID

import psycopg

from laneway.app.laneway import Laneway
from laneway.errors import ConfigError
from laneway.store import jobs
from laneway.testing import faults, recorder
from laneway.testing.bound_app import bind
from laneway.testing.checker import check
from laneway.testing.history import History
from laneway.testing.scratch_database import ScratchDatabase, open_scratch_database
from laneway.testing.virtual_clock import clock

PATIENCE_S: Final = 60.0
# Asks a process like the workers, because what the application does at import may depend on it.
_ASK: Final = """
import sys
from laneway.app.loader import load_app
from laneway.config.settings import Settings
sys.exit(load_app(sys.argv[1]).settings.conninfo != Settings.load().conninfo and 3)
"""
_OTHER_DATABASE: Final = 3
_LOOK_S: Final = 0.02


class Drill:
    """The workers of one drill, and the record of what their database did."""

    def __init__(self, app: str, database: ScratchDatabase) -> None:
        self._app = app
        self._database = database
        self._workers: list[subprocess.Popen[bytes]] = []
        # Events that the database cannot see: the faults.
        self._faults = History()

    @property
    def dsn(self) -> str:
        """The DSN of the drill's database; put a `laneway.testing.proxy.Proxy` before it to cut."""
        return self._database.dsn

    def start_worker(self, *arguments: str, dsn: str | None = None) -> int:
        """Start `laneway worker` as a process and return its id."""
        worker = subprocess.Popen(
            faults.tied([sys.executable, "-m", "laneway", "worker", self._app, *arguments]),
            env=_environment(dsn or self.dsn),
        )
        self._workers.append(worker)
        return worker.pid

    def kill(self, pid: int) -> None:
        """Kill a worker and its child processes, as the loss of its machine would."""
        self._note("death", pid)
        faults.kill(*faults.tree(pid))

    def pause(self, pid: int) -> None:
        """Stop a worker and its child processes: they keep their connections, and do nothing."""
        self._note("fault", pid)
        faults.pause(*faults.tree(pid))

    def resume(self, pid: int) -> None:
        """Continue a stopped worker, which does not know how long it slept."""
        faults.resume(*faults.tree(pid))

    def wait_for(self, job_id: UUID, status: str, timeout: float = PATIENCE_S) -> None:
        """Wait until a job has this status."""
        deadline = time.monotonic() + timeout
        while True:
            job = self._database.run(jobs.get(job_id))
            found = "gone" if job is None else job.status.value
            if found == status:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"job {job_id} is {found}, not {status}, after {timeout:g} s")
            time.sleep(_LOOK_S)

    def check(self) -> None:
        """Fail if a law of `laneway.testing.checker` was broken since the drill began."""
        __tracebackhide__ = True
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            final = recorder.read_final(conn)
            history = History([*self._faults, *recorder.read(conn)])
        for event in history.of("born"):
            history.add("submit", event.job, phase="ok", op=event.job)
        final = replace(
            final, jobs={job_id: replace(job, op=job_id) for job_id, job in final.jobs.items()}
        )
        violations = check(history, final)
        if violations:
            raise AssertionError("\n".join(["laws were broken:", *map(str, violations)]))

    def end(self) -> None:
        """Kill the workers that are left."""
        for worker in self._workers:
            if worker.poll() is None:
                faults.end_all(faults.tree(worker.pid))
            worker.wait()

    def _note(self, what: str, pid: int) -> None:
        self._faults.add(what, at=clock.now().timestamp(), pid=pid, t=time.monotonic())


def _environment(dsn: str) -> dict[str, str]:
    return {**os.environ, "LANEWAY_DATABASE_URL": dsn, "LANEWAY_LISTEN_DSN": ""}


def _require_database_of_drill(app: str, dsn: str) -> None:
    """Refuse an application whose workers would use another database than the drill's."""
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, app],
        env=_environment(dsn),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == _OTHER_DATABASE:
        raise ConfigError(
            f"{app} does not use LANEWAY_DATABASE_URL, and workers of a drill would run the jobs of"
            " its real database: create it as Laneway(), without a database_url in code"
        )
    if asked.returncode != 0:
        raise ConfigError(f"workers cannot import {app}:\n{asked.stderr.strip()}")


@contextmanager
def drill(lw: Laneway, app: str) -> Iterator[Drill]:
    """Bind an application to a recorded database, whose clock goes on in real time.

    `app` is its `module:name`, for the workers. The application must take its database from
    LANEWAY_DATABASE_URL: a URL in code is refused, because workers would run its jobs.
    """
    with open_scratch_database() as database, bind(lw, database):
        _require_database_of_drill(app, database.dsn)
        with psycopg.connect(database.dsn, autocommit=True) as conn:
            recorder.install(conn)
        clock.resume()
        run = Drill(app, database)
        try:
            yield run
        finally:
            run.end()
