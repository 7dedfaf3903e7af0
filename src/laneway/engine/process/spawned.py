"""Child processes whose exit is noticed even if a handler ignores SIGCHLD."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from subprocess import Popen
from typing import Any, NamedTuple


class SocketPair(NamedTuple):
    """A socket pair to a child, with streams on the worker's end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ours: socket.socket
    theirs: socket.socket


@asynccontextmanager
async def socket_pair() -> AsyncIterator[SocketPair]:
    """Open a socket pair; start the child inside the block, which closes our end if that fails."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        try:
            yield SocketPair(reader, writer, ours, theirs)
        except BaseException:
            writer.transport.abort()
            raise


class Spawned:
    """A program started by the worker; a thread waits for its exit.

    Event loops rely on SIGCHLD, which a handler can ignore, and on waitpid, which fails if a
    handler waits for all children first.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[int] = self._loop.create_future()
        self._popen = Popen(command, **options)
        self.pid = self._popen.pid
        try:
            threading.Thread(target=self._watch, name="laneway wait", daemon=True).start()
        except BaseException:
            self.kill()
            self._popen.wait()
            raise

    @property
    def returncode(self) -> int | None:
        return self._gone.result() if self._gone.done() else None

    async def wait(self) -> int:
        """Wait for the exit code; a signal gives a negative one."""
        return await asyncio.shield(self._gone)

    def kill(self) -> None:
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)

    def _watch(self) -> None:
        code = self._popen.wait()
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int) -> None:
        if not self._gone.done():
            self._gone.set_result(code)
