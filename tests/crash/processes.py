"""Real worker processes that a row starts, stops, kills and cleans up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import laneway
from laneway.testing import faults

ROOT = Path(__file__).resolve().parents[2]
HEARTBEAT_S = 2 / 3
TIMINGS = {
    "LANEWAY_LEADER_TTL": "1",
    "LANEWAY_WATCHDOG_INTERVAL": "0.25",
    "LANEWAY_CONNECT_TIMEOUT": "2",
    "LANEWAY_CONCURRENCY": "30",
    "LANEWAY_SHUTDOWN_GRACE": "5",
}


def worker_environment(dsn: str, sink: Path) -> dict[str, str]:
    """The environment of a test process: this source, this database, short intervals."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY_", "PG"))}
    source = str(Path(laneway.__file__).parents[1])
    return {
        **kept,
        **TIMINGS,
        "LANEWAY_DATABASE_URL": dsn,
        "PYTHONPATH": os.pathsep.join([source, str(ROOT)]),
        "CRASH_SINK": str(sink),
        "CRASH_SINK_DSN": dsn,
    }


class WorkerProcess:
    """One worker, or a supervisor with its workers."""

    def __init__(
        self,
        dsn: str,
        sink: Path,
        *,
        sink_dsn: str | None = None,
        is_supervised: bool = False,
        processes: int = 1,
        lanes: str | None = None,
        app: str = "tests.crash.app:lw",
        extra: Mapping[str, str] | None = None,
    ) -> None:
        environment = {
            **worker_environment(dsn, sink),
            "CRASH_SINK_DSN": sink_dsn or dsn,
            **(extra or {}),
        }
        self.is_supervised = is_supervised
        if is_supervised:
            command = ["-m", "laneway", "worker", app, f"--processes={processes}"]
            command += [f"--lanes={lanes}"] if lanes else []
        else:
            command = ["-m", "tests.crash.worker", app, *([lanes] if lanes else [])]
        self.log = sink / f"worker-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                faults.tied([sys.executable, *command]),
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def tree(self) -> list[int]:
        return faults.tree(self.pid)

    def terminate(self) -> None:
        faults.send(signal.SIGTERM, [self.pid])

    def end(self) -> None:
        """End the process and its children, whatever their state."""
        if self.is_alive:
            faults.end_all(self.tree())
        self.process.wait()
