"""The output on a terminal, tested with a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from tests.cli.conftest import PROGRAM
from tests.support.job_factory import JobFactory

SECONDS = 60.0


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self.screen = screen
        self.seen = ""

    def until(self, text: str) -> None:
        """Reads on until the text has been shown."""
        deadline = time.monotonic() + SECONDS
        while text not in self.seen:
            is_open = self._read(max(0.0, deadline - time.monotonic()))
            assert is_open, f"{text!r} was not shown: {self.seen!r}"

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def wait(self) -> int:
        """Reads to the end: what is shown last counts, and a full terminal holds programs up."""
        while self._read(SECONDS):
            pass
        return self.process.wait(SECONDS)

    def _read(self, within_s: float) -> bool:
        """Reads what is shown; False: nothing was, or the other side is closed."""
        if not select.select([self.screen], [], [], within_s)[0]:
            return False
        try:
            shown = os.read(self.screen, 65536)
        except OSError:
            return False
        self.seen += shown.decode(errors="replace")
        return bool(shown)


@contextmanager
def terminal(dsn: str, *args: object) -> Iterator[Terminal]:
    screen, inside = pty.openpty()
    env = {**os.environ, "LANEWAY_DATABASE_URL": dsn, "TERM": "xterm", "COLUMNS": "160"}
    env.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*PROGRAM, *(str(arg) for arg in args)],
        env=env,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield Terminal(process, screen)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(screen)


def test_watch_draws_bar_and_prints_outcome(dsn: str, factory: JobFactory) -> None:
    claim = factory.running()
    with terminal(dsn, "jobs", "watch", claim.job_id, "--interval", "50ms") as shown:
        shown.until("greet running")
        factory.settle(claim, "giveup", error='{"type": "E", "message": "no luck"}')
        assert shown.wait() == 1
    assert f"job {claim.job_id} failed: E: no luck" in shown.seen


def test_top_shows_the_lanes_until_interrupted(dsn: str) -> None:
    with terminal(dsn, "top", "--interval", "100ms") as shown:
        shown.until("interactive")
        shown.process.send_signal(signal.SIGINT)
        assert shown.wait() == 130
    assert "Traceback" not in shown.seen


def test_delete_asks_and_takes_no_for_an_answer(dsn: str, factory: JobFactory) -> None:
    job_id = factory.completed()
    with terminal(dsn, "jobs", "delete", job_id) as shown:
        shown.until("Delete 1 job?")
        shown.type("n\n")
        assert shown.wait() == 1
    assert _exists(factory, job_id)
    with terminal(dsn, "jobs", "delete", job_id) as shown:
        shown.until("Delete 1 job?")
        shown.type("y\n")
        assert shown.wait() == 0
    assert not _exists(factory, job_id)


def test_colour_is_for_terminals_unless_it_is_refused(dsn: str) -> None:
    with terminal(dsn, "lanes", "ls") as shown:
        assert shown.wait() == 0
    assert "\x1b[" in shown.seen
    with terminal(dsn, "--no-color", "lanes", "ls") as plain:
        assert plain.wait() == 0
    assert "\x1b[3" not in plain.seen


def _exists(factory: JobFactory, job_id: UUID) -> bool:
    found: Any = factory.conn.execute("select from laneway.jobs where id = %s", [job_id]).fetchone()
    return found is not None
