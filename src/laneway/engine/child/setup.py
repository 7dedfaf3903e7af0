"""Sets up a child process: dies with its worker, limits its memory, finds its modules."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from types import FrameType
from typing import NoReturn

from laneway.engine.child.wire import Message

PR_SET_PDEATHSIG = 1
M_ARENA_MAX = -8


def die() -> NoReturn:
    """Kill this process and the programs of its handlers, without running more Python."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(70)


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process with its parent: the listener needs the GIL for that."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        die()


def adopt_environment(handshake: Message) -> None:
    """Use the worker's module path and arguments."""
    sys.path[:] = handshake["path"]
    sys.argv[:] = handshake["argv"]
    if handshake["python_path"] is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = handshake["python_path"]


def use_one_arena() -> None:
    """Keep glibc from reserving 64 MB per thread, which the memory limit would count."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def limit_memory(memory_mb: int) -> None:
    """Limit the memory of the user's code and data; the bare child's own memory is added."""
    limit = memory_mb << 20
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        limit += int(statm.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    # Without system support for the limit, the job still runs.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def ignore_signals() -> None:
    """Ignore signals to the whole group: only the worker ends a child.

    SIG_IGN would be inherited by programs started from here.
    """
    own = os.getpid()

    def ignore(number: int, frame: FrameType | None) -> None:
        if os.getpid() != own:
            # A process forked by a handler obeys signals.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ignore)
