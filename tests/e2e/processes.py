"""Real servers and workers of the journeys."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2

from laneway.testing import faults
from tests.e2e import waits
from tests.e2e.app import STEPS

ROOT = Path(__file__).parents[2]
APP = "tests.e2e.app:lw"
_STOP_S = 30.0
_QUICK = {"LANEWAY_LEADER_TTL": "1", "LANEWAY_WATCHDOG_INTERVAL": "0.2"}


class Program:
    """A program whose output is kept; it is killed when the block ends."""

    def __init__(self, command: Sequence[str], dsn: str, steps: Path, **variables: str) -> None:
        self._command = [sys.executable, *command]
        self._variables = {
            **{name: value for name, value in os.environ.items() if "LANEWAY_" not in name},
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "LANEWAY_DATABASE_URL": dsn,
            # No program of a test may open a browser by itself.
            "BROWSER": "true",
            STEPS: str(steps),
            **_QUICK,
            **variables,
        }
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start, or start again after a kill."""
        self.process = subprocess.Popen(
            faults.tied(self._command),
            cwd=ROOT,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def kill(self) -> None:
        """Kill it with all its child processes, as a crash would."""
        faults.end_all(faults.tree(self.process.pid))
        self.process.wait(_STOP_S)
        self._reading.join(_STOP_S)

    def find(self, pattern: str) -> str:
        """The first group of the pattern, once a line of the output matches it."""

        def look() -> str | None:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return found[1]
            if self.process.poll() is not None:
                raise AssertionError("the program ended:\n" + "".join(self.lines))
            return None

        return waits.until(look)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line)


class ServerProgram(Program):
    """`laneway server`; a restart keeps its port."""

    def __init__(self, dsn: str, steps: Path, port: int = 0, **variables: str) -> None:
        command = ["-m", "laneway", "server", "--port", str(port)]
        super().__init__(command, dsn, steps, **variables)

    def start(self) -> None:
        self.lines.clear()
        super().start()
        self.url = self.find(r"serving (http://\S+)").rstrip("/")
        # A restart needs the same address for the pages that are open.
        self._command[-1] = self.url.rpartition(":")[2]
        self.await_ready()

    @property
    def first_link(self) -> str:
        """The link that the first start on an empty database prints."""
        return self.find(r"(http://\S+/login\?link=\S+)")

    def await_ready(self) -> None:
        waits.until(self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/readyz").status_code == 200
        except httpx2.TransportError:
            return False


class MountedProgram(ServerProgram):
    """An application with Laneway mounted at /laneway."""

    def __init__(self, dsn: str, steps: Path) -> None:
        Program.__init__(self, ["-m", "tests.e2e.mounted", "0"], dsn, steps)


class WorkerProgram(Program):
    """`laneway worker` with the application of the journeys."""

    def __init__(self, dsn: str, steps: Path, *options: str, **variables: str) -> None:
        super().__init__(["-m", "laneway", "worker", APP, *options], dsn, steps, **variables)
