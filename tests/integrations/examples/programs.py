"""Programs of the examples, started with the Python of their environment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx2

from scripts.integrations import ROOT, python_of

EXAMPLES = ROOT / "examples" / "integrations"
# Generous: only a broken program takes this long.
PATIENCE_S = 120.0

T = TypeVar("T")


class Program:
    """A running program, whose output goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def wait_for(self, text: str) -> None:
        """Wait until the program has written the text."""

        def has_written() -> bool:
            assert self.process.poll() is None, self.output
            return text in self.output

        until(has_written, lambda: self.output)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


class Environment:
    """The environment of an example, with variables for its programs."""

    def __init__(self, name: str, folder: str, log_directory: Path, **variables: str) -> None:
        self.python = python_of(name)
        self.directory = EXAMPLES / folder
        self._logs = log_directory
        kept = {
            key: value
            for key, value in os.environ.items()
            if key == "LANEWAY_PG_BIN"
            or not key.startswith(("LANEWAY_", "DATABASE_URL", "PYTHON", "PYTEST", "DJANGO"))
        }
        self.variables = {**kept, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self.variables |= variables

    def run(self, *arguments: str, **more: str) -> str:
        """Run a program to its end and return what it printed."""
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.directory,
            env={**self.variables, **more},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def start(self, *arguments: str, more: Mapping[str, str] | None = None) -> Iterator[Program]:
        """Start a program; end it after the block, if it still runs."""
        log = self._logs / f"{len(list(self._logs.glob('*.log')))}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(self.python), *arguments],
                cwd=self.directory,
                env={**self.variables, **(more or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        program = Program(process, log)
        try:
            yield program
        finally:
            print(program.output)  # pytest shows it if the test failed
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE_S)
                finally:
                    process.kill()
                    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def client_of(program: Program, port: int) -> Iterator[httpx2.Client]:
    """A client of a program, once that answers."""
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:

        def answers() -> bool:
            assert program.process.poll() is None, program.output
            try:
                client.get("/")
            except httpx2.TransportError:
                return False
            return True

        until(answers, lambda: program.output)
        yield client


def until(look: Callable[[], T], explain: Callable[[], object] = str) -> T:
    """The first true value that `look` returns."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline, explain()
        time.sleep(0.05)
    return found
