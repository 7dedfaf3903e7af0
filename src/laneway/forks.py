"""Cut forked processes off from the worker that they were forked in.

A handler may fork: by itself, by multiprocessing, by a library. The forked child gets copies of the
worker's connections, pipes and signal handlers, and goes on in the middle of its event loop. Left
alone it keeps pipes open that must end with the worker, passes its signals to the worker's loop,
and runs the worker's code on. Here its copies are replaced by /dev/null, and it ends where the
handler ends.
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
        """Those that are open now."""
        ...


class Fds:
    """An owner of descriptors until `let_go`.

    An event loop closes some of them earlier, by itself. Their numbers may mean files of the
    application then, which are not ours to replace.
    """

    def __init__(self, *fds: int) -> None:
        self._fds = {fd: _file_of(fd) for fd in fds}
        own(self)

    def fds(self) -> Iterable[int]:
        return [fd for fd, file in self._fds.items() if file and file == _file_of(fd)]

    def let_go(self) -> None:
        self._fds = {}


def _file_of(fd: int) -> tuple[int, int] | None:
    """Device and number of the open file; None: there is none."""
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
_kept_back = threading.local()


def own(owner: DescriptorOwner) -> None:
    """Cut forked children off from what the owner holds, for as long as there is an owner."""
    _owners.add(owner)


def own_signals(numbers: Iterable[int]) -> None:
    """Give forked children the default for these signals, unless somebody has replaced ours."""
    _handlers.update({number: signal.getsignal(number) for number in numbers})


def enter(loop: asyncio.AbstractEventLoop | None) -> None:
    """Handlers run here, on this loop if any: processes that they fork must not run it on."""
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
    """What a context says in a forked process, which nobody there could answer."""
    return Refused("ctx was used in a process that the handler forked: use it in the handler's own")


def end(error: BaseException | None = None) -> NoReturn:
    """End this forked process as a program ends that returned, or raised."""
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
    """Keep signals back until the child has its own handlers: else it would lose them."""
    if _loops:
        _kept_back.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handlers)


def _after_fork_in_parent() -> None:
    mask = _kept_back.__dict__.pop("mask", None)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_fork_in_child() -> None:
    try:
        if _owners:
            _cut_off()
        if _loops:
            _let_go()
    finally:
        _after_fork_in_parent()


def _let_go() -> None:
    """Give signals their defaults, and end where the worker's loop would run on."""
    global is_fork
    is_fork = True
    with contextlib.suppress(ValueError, OSError):
        # Else a signal to this process is one to the worker's loop, too.
        signal.set_wakeup_fd(-1)
    for number, handler in _handlers.items():
        if signal.getsignal(number) is handler:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL:
        # An event loop written in C has a handler for it that Python does not know.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for loop in _loops:
        # Wherever control comes back to the loop, here it ends.
        if loop is not None and not loop.is_closed():
            # A loop in debug mode refuses calls of other threads; here there is no other.
            loop.set_debug(False)
            loop.call_soon(end)


def _cut_off() -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for owner in list(_owners):
        with contextlib.suppress(Exception):
            for fd in owner.fds():
                if fd >= 0:
                    # Not closed: the number must not come to mean another file.
                    os.dup2(null, fd, inheritable=False)
    os.close(null)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
