"""Real worker processes, to be killed, stopped and signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support.warm_program import WarmPopen

ROOT = Path(__file__).parents[2]
APP = "tests.engine.app:lw"


class WorkerCommand:
    """One worker command, forked after the imports, and all its child processes, which are not."""

    def __init__(self, dsn: str, *options: str, app: str = APP, **environment: str) -> None:
        self.process: subprocess.Popen[bytes] = WarmPopen(
            [sys.executable, "-m", "laneway", "worker", app, *options],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
                "LANEWAY_DATABASE_URL": dsn,
                "LANEWAY_LEADER_TTL": "1",
                "LANEWAY_WATCHDOG_INTERVAL": "0.1",
                **environment,
            },
            start_new_session=True,
        )
        self._seen: set[psutil.Process] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.tree()
        for process in self._seen:
            if process.is_running():
                process.kill()
        self.process.kill()
        self.process.wait()

    def tree(self) -> list[psutil.Process]:
        """All running child processes of the command."""
        try:
            found = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        self._seen.update(found)
        return found

    def of(self, mark: str) -> list[psutil.Process]:
        """The child processes with the mark in their command line."""
        return [each for each in self.tree() if mark in _command(each)]

    def all_gone(self) -> bool:
        """Whether the command and all its known child processes have ended."""
        return self.process.poll() is not None and not any(_is_alive(p) for p in self._seen)

    def kill(self) -> None:
        self.tree()
        self.process.kill()
        self.process.wait()

    def terminate_again(self) -> bool:
        """Send SIGTERM again, as an impatient person does; return whether all have ended."""
        if self.process.poll() is None:
            self.terminate()
        return self.all_gone()

    def terminate(self) -> None:
        self.tree()
        self.process.send_signal(signal.SIGTERM)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
