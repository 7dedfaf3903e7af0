"""Real worker processes, started and stopped by the benchmark, and gone when it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from bench import load
from bench.server import Database

ROOT = Path(__file__).resolve().parents[1]
READY_S = 60.0
WARM_UP = 500


class WorkerFailed(Exception):
    """A worker process did not do what it was started for."""


def environment(database: Database) -> dict[str, str]:
    """Nothing of Laneway's but the database is set: the defaults are what is measured."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY_", "PG"))}
    paths = [str(ROOT), *(path for path in sys.path if path)]
    return {
        **kept,
        "DATABASE_URL": database.dsn,
        "PYTHONPATH": os.pathsep.join(paths),
        "LANEWAY_LOG_LEVEL": "WARNING",
    }


class Workers:
    """`laneway worker` a number of times, without a supervisor, ready on entry."""

    def __init__(self, database: Database, processes: int = 1, concurrency: int = 1000) -> None:
        self._database = database
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _start_all(self, log: int, parent_pipe: int) -> list[subprocess.Popen[bytes]]:
        return [self._start(log, parent_pipe) for _ in range(self._count)]

    def _start(self, log: int, parent_pipe: int) -> subprocess.Popen[bytes]:
        command = ["-m", "laneway", "worker", "bench.app:lw", f"--concurrency={self._concurrency}"]
        return subprocess.Popen(
            [sys.executable, *command, "--grace=0.1s"],
            cwd=ROOT,
            env={**environment(self._database), "BENCH_PARENT_PIPE": str(parent_pipe)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[parent_pipe],
            # Ctrl-C is for the benchmark, which stops its workers itself.
            start_new_session=True,
        )

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
        """Raises when one of them has ended."""
        if any(process.poll() is not None for process in self._processes):
            said = self._log.read_text(errors="replace")[-3000:]
            raise WorkerFailed(f"a worker process has ended by itself:\n{said}")

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while self._ready() < self._count:
            self.check()
            if time.monotonic() > deadline:
                said = self._log.read_text(errors="replace")[-3000:]
                raise WorkerFailed(f"no {self._count} workers after {READY_S:g} s:\n{said}")
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
        """Has every process run a few jobs: its connections are open, its statements planned."""
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
        """Returns when the job with the number `last`, and every other, has ended."""
        # Latencies by an index; the next question, a dear one, is asked at the end only.
        self.await_ended(last, within_s)
        self._await("not exists (select from laneway.ready)", within_s)
        self.await_idle(within_s)

    def await_ended(self, seq: int, within_s: float) -> None:
        """Returns when this job has ended."""
        self._await(f"exists (select from laneway.outcome where seq = {seq})", within_s)

    def await_running(self, count: int, within_s: float) -> None:
        """Returns when so many jobs are running."""
        self._await(f"(select sum(running) from laneway.slot_usage) >= {count}", within_s)

    def await_running_at_most(self, count: int, within_s: float) -> None:
        """Returns when no more than so many jobs are running."""
        self._await(f"(select count(*) from laneway.lease) <= {count}", within_s)

    def await_parked(self, count: int, within_s: float) -> None:
        """Returns when so many jobs have been put aside to wait for a key."""
        self._await(f"(select count(*) from laneway.key_waiters) >= {count}", within_s)

    def await_idle(self, within_s: float) -> None:
        """Returns when no job is running."""
        self._await("not exists (select from laneway.lease)", within_s)

    def _await(self, condition: str, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not self._database.value(f"select {condition}"):
            self.check()
            if time.monotonic() > deadline:
                raise WorkerFailed(f"after {within_s:g} s not yet: {condition}")
            time.sleep(0.02)


# Makes the workers of a database: so many.
WorkersFactory = Callable[..., Workers]
