"""The processes of a story: real programs of an example, on an embedded PostgreSQL for tests.

`programs` starts them in the folder of the test, ends them after it, and shows their output if the
test fails. A story waits for public effects, never for a time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from laneway import Laneway
from laneway.testing import bind, clock, faults, open_scratch_database

T = TypeVar("T")
# Generous: only a broken story takes this long.
PATIENCE_S = 120.0
LOOK_S = 0.05


def until(look: Callable[[], T | None], what: str) -> T:
    """The first value of `look` that is true; `what` describes what was not seen."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if found := look():
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {PATIENCE_S:g} s, {what}: {found!r}")
        time.sleep(LOOK_S)


class Program:
    """A program that runs in the background, with its output in a file."""

    def __init__(self, command: list[str], folder: Path, env: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                faults.tied(command),
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def find(self, pattern: str) -> str:
        """The first group of a line that the program prints, now or later."""

        def look() -> re.Match[str] | None:
            found = re.search(pattern, self.output)
            if found is None and self._process.poll() is not None:
                raise AssertionError(f"{self.log.stem} has ended:\n{self.output}")
            return found

        return until(look, f"{self.log.stem} has not printed {pattern}").group(1)

    def kill(self) -> None:
        """Send SIGKILL to the program and its children, as the loss of its machine would."""
        faults.kill(*faults.tree(self.pid))
        self._process.wait()

    def pause(self) -> None:
        """Stop the program and its children: they keep their connections and do nothing."""
        faults.pause(*faults.tree(self.pid))

    def resume(self) -> None:
        """Continue a paused program, which does not know how long it slept."""
        faults.resume(*faults.tree(self.pid))

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self._process.terminate()
        return self._process.wait(PATIENCE_S)

    def end(self) -> None:
        if self._process.poll() is None:
            faults.end_all(faults.tree(self.pid))
        self._process.wait()


class Programs:
    """The programs of one story, and the files that they share."""

    def __init__(self, folder: Path, files: Path, lw: Laneway, dsn: str) -> None:
        self.folder = folder
        self.files = files
        self.lw = lw
        """A client without handlers, to look from outside."""
        self.dsn = dsn
        self.started: list[Program] = []
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: v for name, v in os.environ.items() if not name.startswith("LANEWAY_")}
        self.without_database = {**kept, "PATH": path, "PYTHONUNBUFFERED": "1"}
        self.environment = {**self.without_database, "LANEWAY_DATABASE_URL": dsn}

    def run(self, *command: str) -> str:
        """Run a program to its end and return its output."""
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def start(self, *command: str, has_database: bool = True, **variables: str) -> Program:
        """Start a program in the background."""
        known = self.environment if has_database else self.without_database
        named = "-".join(re.sub(r"\W", "-", Path(part).name) for part in command[:2])
        log = self.files / f"{len(self.started)}-{named}.log"
        program = Program([*command], self.folder, {**known, **variables}, log)
        self.started.append(program)
        return program

    def token(self, principal: str, role: str, *options: str) -> str:
        """Create a principal with a role, and return its token."""
        file = self.files / f"{principal}.token"
        self.run("laneway", "principals", "create", principal, "--kind", "service")
        self.run("laneway", "roles", "grant", principal, role, *options)
        self.run("laneway", "tokens", "create", principal, "--name", "story", "--out", str(file))
        return file.read_text("utf-8").strip()

    def end(self) -> None:
        for program in self.started:
            program.end()


@pytest.fixture
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Programs]:
    """Processes on an empty database, whose clock goes on in real time."""
    lw = Laneway()
    with open_scratch_database() as database, bind(lw, database):
        clock.resume()
        found = Programs(request.path.parent, tmp_path, lw, database.dsn)
        try:
            yield found
        finally:
            found.end()
            for program in found.started:
                print(f"--- {program.log.name}\n{program.output}")  # shown if the test failed
