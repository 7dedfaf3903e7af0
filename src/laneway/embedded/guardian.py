"""The process that stops the server when its last user has gone.

It holds the user's place in `users.lock` and the reading end of a pipe, by which the owner says
goodbye. It also watches the owner's process: processes that the owner forked may hold the other end
open after its death. Run as a plain file with the standard library alone: it must start fast, stay
small, and not import the package it guards.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

STOPPED, STILL_USED = 0, 3

# A fast stop that takes longer than this is turned into an immediate one; the next start recovers.
PATIENCE = 30.0
_POLL = 0.02
_LOOK_MS = 1000
_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class StillRunning(Exception):
    """The server's processes did not go."""


class Postmaster:
    """The server process of one cluster, as its lock and its pid file tell."""

    def __init__(self, home: Path) -> None:
        self.pgdata = home / "pgdata"
        self._lock = home / "server.lock"

    def reserve(self) -> int | None:
        """Take the lock that the server's processes will inherit, if none of them lives."""
        return try_lock(self._lock)

    @property
    def has_processes(self) -> bool:
        """Whether any process of the cluster lives, be it only an orphan of a killed server."""
        lock = try_lock(self._lock, fcntl.LOCK_SH)
        if lock is not None:
            os.close(lock)
        return lock is None

    @property
    def pid(self) -> int | None:
        """The server's pid, given only when that process is the server of this very cluster."""
        lines = self.pid_file()
        if not lines or not self.has_processes:
            return None
        pid = int(lines[0])
        return pid if serves(command_line(pid), self.pgdata) else None

    @property
    def is_ready(self) -> bool:
        return self.pid is not None and self.pid_file()[7:8] == ["ready"]

    def pid_file(self) -> list[str]:
        """Lines of postmaster.pid: pid, directory, start, port, socket, address, memory, status."""
        try:
            lines = (self.pgdata / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []
        stripped = [line.strip() for line in lines]
        return stripped if stripped and stripped[0].isdigit() else []

    def stop(self, mode: str) -> None:
        """Stop the server and wait until its last process has gone."""
        if not self._signal_until_gone(_SIGNALS[mode], PATIENCE) and not self._signal_until_gone(
            signal.SIGQUIT, PATIENCE
        ):
            raise StillRunning(f"the server in {self.pgdata} does not stop")

    def kill(self) -> None:
        """Kill the server process and wait until the others have noticed."""
        if not self._signal_until_gone(signal.SIGKILL, PATIENCE):
            raise StillRunning(f"processes of the killed server in {self.pgdata} do not end")

    def _signal_until_gone(self, number: signal.Signals, patience: float) -> bool:
        deadline = time.monotonic() + patience
        signalled = None
        while self.has_processes:
            # A server that is just being started has the lock before it has a pid.
            if (pid := self.pid) is not None and pid != signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                signalled = pid
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True


def leave(home: Path, mode: str, users: int | None) -> bool:
    """Give up a place in `users.lock` and stop the server if that was the last one."""
    try:
        with locked(home / "start.lock"):
            # Under the start lock, so that of two that leave together one sees the other gone.
            if users is not None:
                os.close(users)
            alone = try_lock(home / "users.lock")
            if alone is None:
                return False
            try:
                Postmaster(home).stop(mode)
            finally:
                os.close(alone)
    except FileNotFoundError:
        pass  # the data directory was removed; PostgreSQL notices that by itself
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, waiting for it."""
    lock = open_private(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """Take a lock if it is free; the descriptor holds it until its last copy is closed."""
    lock = open_private(path)
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def open_private(path: Path) -> int:
    """Open a file of ours for reading and appending; root must not follow a link put there."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def command_line(pid: int) -> str:
    """What a process was started with; nothing for one that is dead, reaped or not."""
    if Path("/proc/self").exists():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return ""
        return os.fsdecode(command.rstrip(b"\0").replace(b"\0", b" "))
    ran = subprocess.run(
        ["ps", "-ww", "-p", str(pid), "-o", "args="],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip()


def serves(command: str, pgdata: Path) -> bool | None:
    """Whether a process is the server of a cluster; None for a PostgreSQL that does not tell."""
    program, _, directory = command.partition(" -D ")
    if not re.search(r"(^|/)postgres( |$)", program):
        return False
    if directory.startswith("/"):
        return f"{directory} ".startswith(f"{pgdata} ")
    return None


def exists(pid: int) -> bool:
    """Whether the pid is taken, be it by a dead process that nobody has reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def wait_for(owner: int) -> str:
    """How the owner says to stop the server; nothing when it died."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN)
    with contextlib.suppress(AttributeError, OSError):
        poll.register(os.pidfd_open(owner), select.POLLIN)
    while not poll.poll(_LOOK_MS) and os.getppid() == owner:
        pass
    if not any(fd == sys.stdin.fileno() for fd, _ in poll.poll(0)):
        return ""
    return sys.stdin.readline().strip()


def main() -> int:
    # A signal to the whole group or control group ends the owner; the pipe then tells us.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    home, users, owner = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    mode = wait_for(owner) or "fast"
    return STOPPED if leave(home, mode, users) else STILL_USED


if __name__ == "__main__":
    sys.exit(main())
