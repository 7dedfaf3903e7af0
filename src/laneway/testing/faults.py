"""Kills, stops and continues real processes, one or a whole tree."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def kill(*pids: int) -> None:
    """Kills processes as a crash would; ignores those that have already ended."""
    send(signal.SIGKILL, pids)


def pause(*pids: int) -> None:
    """Stops processes: they keep connections and locks, but do nothing."""
    send(signal.SIGSTOP, pids)


def resume(*pids: int) -> None:
    """Continues stopped processes."""
    send(signal.SIGCONT, pids)


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def tree(pid: int) -> list[int]:
    """A process and its descendants, parents first."""
    children = defaultdict(list)
    for child, parent in _parents():
        children[parent].append(child)
    found = [pid]
    for one in found:
        found += children[one]
    return found


def descendants() -> list[int]:
    """The descendants of this process; includes orphans after `adopt_orphans`."""
    return tree(os.getpid())[1:]


def adopt_orphans() -> bool:
    """Makes this process the parent of orphaned descendants, so that none is missed (Linux)."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def tied(command: Sequence[str]) -> list[str]:
    """The command, changed to be killed when its parent dies, if `setpriv` is installed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else list(command)


def end_all(pids: Iterable[int], within_s: float = 5.0) -> list[int]:
    """Kills processes, stopped ones too, and waits for them; returns those still alive."""
    left = set(pids)
    kill(*left)
    deadline = time.monotonic() + within_s
    while left and time.monotonic() < deadline:
        for pid in list(left):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if not is_alive(pid):
                left.discard(pid)
        time.sleep(0.01)
    return sorted(left)


def is_alive(pid: int) -> bool:
    """Whether the process runs or is stopped; a zombie is not alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) not in ("Z", "X")


def _state(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "?" if sys.platform != "linux" else "X"
    return text.rpartition(")")[2].split()[0]


def _parents() -> list[tuple[int, int]]:
    """(pid, parent) of every process."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        )
        pairs = (line.split() for line in listed.stdout.splitlines())
        return [(int(pid), int(parent)) for pid, parent in pairs]
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{entry}/stat").read_text()
                # The name in parentheses may itself contain spaces and parentheses.
                found.append((int(entry), int(text.rpartition(")")[2].split()[1])))
    return found
