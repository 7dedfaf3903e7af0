"""What makes a process a child: it dies with its worker, minds its memory, finds its modules."""

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
    """Ends this process, and what its handlers started, without another line of Python."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(70)


def die_with(parent: int) -> None:
    """The listener sees the worker's end only with the GIL; Linux can do without."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        die()


def look_like(handshake: Message) -> None:
    """Modules are found where the worker finds them."""
    sys.path[:] = handshake["path"]
    sys.argv[:] = handshake["argv"]
    if handshake["python_path"] is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = handshake["python_path"]


def keep_to_one_arena() -> None:
    """glibc reserves 64 MB of addresses per thread that allocates, and the limit counts them."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def limit_memory(memory_mb: int) -> None:
    """The limit is for the user's code and data: what the bare child has comes on top."""
    limit = memory_mb << 20
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        limit += int(statm.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    # Where the system has no such limit the job still runs.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def ignore_signals() -> None:
    """The worker decides when a child ends, not whoever signals everything at once.

    A handler and not SIG_IGN, which programs started from here would inherit.
    """
    own = os.getpid()

    def ignore(number: int, frame: FrameType | None) -> None:
        if os.getpid() != own:
            # A fork of a handler's: what its parent sends is meant.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ignore)
