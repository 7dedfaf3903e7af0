"""A program on a pseudo-terminal, for tests of its output and its keys."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.conftest import PROGRAM

SECONDS = 60.0


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self.screen = screen
        self.seen = ""
        # A read may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def until(self, text: str) -> None:
        """Reads on until the text has been shown."""
        deadline = time.monotonic() + SECONDS
        while text not in self.seen:
            is_open = self._read(max(0.0, deadline - time.monotonic()))
            assert is_open, f"{text!r} was not shown: {self.seen!r}"

    def modes(self) -> list[object]:
        """The treatment of keys: echo, lines, signals."""
        return list(termios.tcgetattr(self.screen)[:4])

    def forget(self) -> None:
        """Look only at what is shown from now on."""
        self.seen = ""

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
        self.seen += self._decoder.decode(shown)
        return bool(shown)


@contextmanager
def terminal(dsn: str, *args: object, columns: int = 160, lines: int = 40) -> Iterator[Terminal]:
    screen, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    env = {**os.environ, "LANEWAY_DATABASE_URL": dsn, "TERM": "xterm"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        env.pop(name, None)
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
