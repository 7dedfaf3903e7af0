"""Isolates processes that handlers fork from their worker.

A handler may fork: directly, through multiprocessing or in a library. The forked child inherits the
worker's connections, pipes and signal handlers, and continues in the middle of its event loop. Such
a child would keep pipes open that must end with the worker, pass its signals to the worker's loop
and go on running the worker's code. This module replaces the inherited descriptors by /dev/null
and ends the child where the handler ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Iterable
from typing import NoReturn, Protocol

from laneway.errors import Refused


class DescriptorOwner(Protocol):
    """Holds file descriptors that no forked child may use."""

    def fds(self) -> Iterable[int]:
        """The descriptors that are open now."""
        ...


class Fds:
    """Owns descriptors until `let_go`.

    An event loop may close some of them earlier. Their numbers may then belong to files of the
    application, which must not be replaced.
    """

    def __init__(self, *fds: int) -> None:
        self._fds = {fd: _file_of(fd) for fd in fds}
        own(self)

    def fds(self) -> Iterable[int]:
        return [fd for fd, file in self._fds.items() if file and file == _file_of(fd)]

    def let_go(self) -> None:
        self._fds = {}


def _file_of(fd: int) -> tuple[int, int] | None:
    """The device and inode of the open file; None if the descriptor is closed."""
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# True in a process that was forked while a worker ran in its parent.
is_fork = False

_owners: weakref.WeakSet[DescriptorOwner] = weakref.WeakSet()
_loops: list[asyncio.AbstractEventLoop | None] = []
_handlers: dict[int, object] = {}
_blocked = threading.local()


def own(owner: DescriptorOwner) -> None:
    """Replaces the owner's descriptors in forked children, as long as the owner exists."""
    _owners.add(owner)


def own_signals(numbers: Iterable[int]) -> None:
    """Restores the default of these signals in forked children, unless a handler replaced ours."""
    _handlers.update({number: signal.getsignal(number) for number in numbers})


def enter(loop: asyncio.AbstractEventLoop | None) -> None:
    """Marks that handlers run in this process, on this loop; forked children stop the loop."""
    global is_fork
    if is_fork:
        # This process has its own worker now.
        is_fork = False
        _loops.clear()
    _loops.append(loop)


def leave(loop: asyncio.AbstractEventLoop | None) -> None:
    with contextlib.suppress(ValueError):
        _loops.remove(loop)


def refused() -> Refused:
    """The error of a context in a forked process, where its requests cannot be answered."""
    return Refused("ctx cannot be used in a forked process: use it in the handler's process")


def end(error: BaseException | None = None) -> NoReturn:
    """Ends this forked process with the exit code of a program that returned or raised."""
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        traceback.print_exception(error)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code & 0xFF)


def _before_fork() -> None:
    """Blocks signals until the child has its own handlers, so that none is lost."""
    if _loops:
        _blocked.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handlers)


def _after_fork_in_parent() -> None:
    mask = _blocked.__dict__.pop("mask", None)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_fork_in_child() -> None:
    try:
        if _owners:
            _replace_descriptors()
        if _loops:
            _detach()
    finally:
        _after_fork_in_parent()


def _detach() -> None:
    """Restores signal defaults, and ends this process where the worker's loop would continue."""
    global is_fork
    is_fork = True
    with contextlib.suppress(ValueError, OSError):
        # Otherwise a signal to this process also reaches the worker's loop.
        signal.set_wakeup_fd(-1)
    for number, handler in _handlers.items():
        if signal.getsignal(number) is handler:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL:
        # An event loop written in C has a handler that Python does not know.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for loop in _loops:
        # The process ends as soon as control returns to the loop.
        if loop is not None and not loop.is_closed():
            # In debug mode a loop refuses calls from other threads; this is its only thread.
            loop.set_debug(False)
            loop.call_soon(end)


def _replace_descriptors() -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for owner in list(_owners):
        with contextlib.suppress(Exception):
            for fd in owner.fds():
                if fd >= 0:
                    # Not closed: a new file could reuse the number.
                    os.dup2(null, fd, inheritable=False)
    os.close(null)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
