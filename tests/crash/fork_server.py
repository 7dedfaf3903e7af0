"""Workers forked after all imports: python -m tests.crash.fork_server APP LANES.

Rows that kill many workers must start many. For each line of input, the path of a log, the server
forks a worker and prints its process id. Workers end with the server.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Self

from laneway.app.worker_process import run_worker
from laneway.testing import faults
from tests.crash.processes import ROOT, WorkerProcess, worker_environment

_PR_SET_PDEATHSIG = 1
# Modules that handlers would import on first use.
_BEFOREHAND = ("asyncpg", "sqlalchemy.ext.asyncio", "django.db.backends.postgresql.base")


class ForkedWorker(WorkerProcess):
    """A worker that a fork server has started."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self.is_supervised = False

    @property
    def is_alive(self) -> bool:
        return faults.is_alive(self.pid)

    def end(self) -> None:
        if self.is_alive:
            faults.end_all(self.tree())


class ForkServer:
    """A process that has loaded an application and forks workers."""

    def __init__(self, dsn: str, sink: Path, app: str, lanes: str) -> None:
        self._sink = sink
        self._process = subprocess.Popen(
            faults.tied([sys.executable, "-m", "tests.crash.fork_server", app, lanes]),
            cwd=ROOT,
            env=worker_environment(dsn, sink),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start_worker(self) -> ForkedWorker:
        log = self._sink / f"worker-{time.monotonic_ns()}.log"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{log}\n")
        self._process.stdin.flush()
        return ForkedWorker(int(self._process.stdout.readline()), log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        faults.end_all(faults.tree(self._process.pid))
        self._process.communicate()


def main() -> None:
    app, lanes = sys.argv[1:]
    for module in (app.partition(":")[0], *_BEFOREHAND):
        import_module(module)
    # Killed children are reaped at once.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(become_worker(Path(line.strip()), app, lanes))
        print(pid, flush=True)


def become_worker(log: Path, app: str, lanes: str) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for ours, theirs in ((null, 0), (written, 1), (written, 2)):
        os.dup2(ours, theirs)
    return run_worker(app, lanes=lanes.split(","))


if __name__ == "__main__":
    main()
