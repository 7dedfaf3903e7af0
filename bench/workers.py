"""Real worker processes that never outlive the benchmark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from bench import load
from bench.server import Database

ROOT = Path(__file__).resolve().parents[1]
READY_S = 60.0
WARM_UP = 500


class WorkerFailed(Exception):
    """A worker process ended early or did not do its work in time."""


def environment(database: Database, root: Path = ROOT) -> dict[str, str]:
    """An environment with the database and no other setting: the defaults are measured.

    `root`: another checkout, whose code is used.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY_", "PG"))}
    paths = [str(root), str(root / "src"), *(path for path in sys.path if path)]
    return {
        **kept,
        "DATABASE_URL": database.dsn,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def start(
    module: Sequence[str],
    variables: Mapping[str, str],
    log: int,
    parent_pipe: int,
    root: Path = ROOT,
) -> subprocess.Popen[bytes]:
    """Start a module with its arguments; `bench.app` ends it with the benchmark."""
    return subprocess.Popen(
        [sys.executable, "-m", *module],
        cwd=root,
        env={**variables, "BENCH_PARENT_PIPE": str(parent_pipe)},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=[parent_pipe],
        # Ctrl-C reaches only the benchmark, which stops its workers.
        start_new_session=True,
    )


class Workers:
    """Processes of `laneway worker` without a supervisor, ready on entry.

    A concurrency of None leaves the default.
    """

    def __init__(
        self,
        database: Database,
        processes: int = 1,
        concurrency: int | None = 1000,
        app: str = "bench.app:lw",
        environment: Mapping[str, str] | None = None,
        root: Path = ROOT,
    ) -> None:
        self._database = database
        self._app = app
        self._root = root
        self._environment = dict(environment or {})
        self._count = processes
        self._concurrency = concurrency
        self._log = database.home / "workers.log"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._parent_pipe = -1

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def __enter__(self) -> Self:
        end, self._parent_pipe = os.pipe()
        try:
            with self._log.open("wb") as log:
                self._processes = self._start_all(log.fileno(), end)
            self._await_ready()
        except BaseException:
            self._stop()
            raise
        finally:
            os.close(end)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _start_all(self, log: int, parent_pipe: int) -> list[subprocess.Popen[bytes]]:
        options = [] if self._concurrency is None else [f"--concurrency={self._concurrency}"]
        command = ["laneway", "worker", self._app, *options, "--grace=0.1s"]
        variables = {**environment(self._database, self._root), **self._environment}
        return [start(command, variables, log, parent_pipe, self._root) for _ in range(self._count)]

    def _stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._parent_pipe >= 0:
            os.close(self._parent_pipe)
            self._parent_pipe = -1

    def check(self) -> None:
        """Raise if a worker has ended."""
        if any(process.poll() is not None for process in self._processes):
            output = self._log.read_text(errors="replace")[-3000:]
            raise WorkerFailed(f"a worker process has ended by itself:\n{output}")

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while self._ready() < self._count:
            self.check()
            if time.monotonic() > deadline:
                output = self._log.read_text(errors="replace")[-3000:]
                raise WorkerFailed(f"no {self._count} workers after {READY_S:g} s:\n{output}")
            time.sleep(0.05)

    def _ready(self) -> int:
        return int(
            self._database.value(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and application_name = 'laneway listen'"
                " and state = 'idle' and query ilike 'listen%%'"
            )
        )

    def warm_up(self) -> None:
        """Run a few jobs in every process to open connections and plan statements."""
        self._warm_up(self._count)

    def _warm_up(self, count: int) -> None:
        while True:
            _, last = load.fill(self._database, WARM_UP * count)
            self._database.conn.execute("select pg_notify('laneway', 'wake *')")
            self.await_drained(last, 60.0)
            seen = self._database.value("select count(distinct worker_id) from laneway.outcome")
            if seen >= count:
                return

    def await_drained(self, last: int, within_s: float) -> None:
        """Wait until the job with the number `last`, and every other, has ended."""
        # This query uses an index; the expensive one follows only at the end.
        self.await_ended(last, within_s)
        self._await("not exists (select from laneway.ready)", within_s)
        self.await_idle(within_s)

    def await_ended(self, seq: int, within_s: float) -> None:
        """Wait until this job has ended."""
        self._await(f"exists (select from laneway.outcome where seq = {seq})", within_s)

    def await_running(self, count: int, within_s: float) -> None:
        """Wait until `count` jobs are running."""
        self._await(f"(select sum(running) from laneway.slot_usage) >= {count}", within_s)

    def await_running_at_most(self, count: int, within_s: float) -> None:
        """Wait until at most `count` jobs are running."""
        self._await(f"(select count(*) from laneway.lease) <= {count}", within_s)

    def await_parked(self, count: int, within_s: float) -> None:
        """Wait until `count` jobs have been put aside to wait for a key."""
        self._await(f"(select count(*) from laneway.key_waiters) >= {count}", within_s)

    def await_waiting(self, count: int, within_s: float) -> None:
        """Wait until `count` jobs have status `waiting`."""
        self._await(f"(select count(*) from laneway.waiting) >= {count}", within_s)

    def await_flows_ended(self, within_s: float) -> None:
        """Wait until no job waits, for a worker or for another job, and none runs."""
        tables = ("waiting", "ready", "lease")
        left = (f"not exists (select from laneway.{table})" for table in tables)
        self._await(" and ".join(left), within_s)

    def await_idle(self, within_s: float) -> None:
        """Wait until no job is running."""
        self._await("not exists (select from laneway.lease)", within_s)

    def _await(self, condition: str, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not self._database.value(f"select {condition}"):
            self.check()
            if time.monotonic() > deadline:
                raise WorkerFailed(f"after {within_s:g} s not yet: {condition}")
            time.sleep(0.02)


# Takes a database and a number of processes.
WorkersFactory = Callable[..., Workers]
