"""The process that stops the server when its last user has gone.

It holds the owner's share of `users.lock` and reads a pipe, on which the owner sends the stop mode.
It also watches the owner's process, because processes that the owner forked may keep the pipe open
after its death. It runs as a plain file with only the standard library: it must start fast, stay
small, and not import the package.
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

# After this time a fast stop becomes an immediate one; the next start recovers.
STOP_TIMEOUT = 30.0
_POLL = 0.02
_OWNER_POLL_MS = 1000
_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class ServerStillRunning(Exception):
    """The server's processes did not end."""


class Postmaster:
    """The server process of one cluster, found by its lock and its pid file."""

    def __init__(self, home: Path) -> None:
        self.pgdata = home / "pgdata"
        self._lock = home / "server.lock"

    def reserve(self) -> int | None:
        """Takes the lock that the server's processes inherit, if none of them is alive."""
        return try_lock(self._lock)

    @property
    def has_processes(self) -> bool:
        """Whether any process of the cluster is alive, even an orphan of a killed server."""
        lock = try_lock(self._lock, fcntl.LOCK_SH)
        if lock is not None:
            os.close(lock)
        return lock is None

    @property
    def pid(self) -> int | None:
        """The server's pid; None unless that process serves this cluster."""
        lines = self.pid_file()
        if not lines or not self.has_processes:
            return None
        pid = int(lines[0])
        return pid if serves(command_line(pid), self.pgdata) else None

    @property
    def is_ready(self) -> bool:
        return self.pid is not None and self.pid_file()[7:8] == ["ready"]

    def pid_file(self) -> list[str]:
        """The lines of postmaster.pid.

        They are pid, directory, start time, port, socket, address, memory and status.
        """
        try:
            lines = (self.pgdata / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []
        stripped = [line.strip() for line in lines]
        return stripped if stripped and stripped[0].isdigit() else []

    def stop(self, mode: str) -> None:
        """Stops the server and waits until its last process has ended."""
        if not self._signal_until_gone(_SIGNALS[mode]) and not self._signal_until_gone(
            signal.SIGQUIT
        ):
            raise ServerStillRunning(f"the server in {self.pgdata} does not stop")

    def kill(self) -> None:
        """Kills the server process and waits until its other processes have ended."""
        if not self._signal_until_gone(signal.SIGKILL):
            raise ServerStillRunning(f"processes of the killed server in {self.pgdata} do not end")

    def _signal_until_gone(self, number: signal.Signals) -> bool:
        deadline = time.monotonic() + STOP_TIMEOUT
        signalled = None
        while self.has_processes:
            # A server that is starting has the lock before it has a pid.
            if (pid := self.pid) is not None and pid != signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                signalled = pid
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True


def leave(home: Path, mode: str, users: int | None) -> bool:
    """Releases a share of `users.lock` and stops the server if it was the last one."""
    try:
        with locked(home / "start.lock"):
            # Under the start lock: if two users leave together, the second one stops the server.
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
        pass  # the data directory was removed; PostgreSQL notices that and stops
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits for an exclusive lock and holds it."""
    lock = open_private(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """Takes a lock if it is free; the descriptor holds it until its last copy is closed."""
    lock = open_private(path)
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def open_private(path: Path) -> int:
    """Opens a file for reading and appending; refuses links, which could mislead root."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def command_line(pid: int) -> str:
    """The command line of a process; empty for a dead process or a zombie."""
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
    """Whether a process is the server of a cluster; None for a PostgreSQL without a directory."""
    program, _, directory = command.partition(" -D ")
    if not re.search(r"(^|/)postgres( |$)", program):
        return False
    if directory.startswith("/"):
        return f"{directory} ".startswith(f"{pgdata} ")
    return None


def exists(pid: int) -> bool:
    """Whether the pid is in use, even by a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def wait_for(owner: int) -> str:
    """The stop mode that the owner sends; empty if it died."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN)
    with contextlib.suppress(AttributeError, OSError):
        poll.register(os.pidfd_open(owner), select.POLLIN)
    while not poll.poll(_OWNER_POLL_MS) and os.getppid() == owner:
        pass
    if not any(fd == sys.stdin.fileno() for fd, _ in poll.poll(0)):
        return ""
    return sys.stdin.readline().strip()


def main() -> int:
    # A signal to the whole process group also ends the owner, and the pipe reports that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    home, users, owner = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    mode = wait_for(owner) or "fast"
    return STOPPED if leave(home, mode, users) else STILL_USED


if __name__ == "__main__":
    sys.exit(main())
