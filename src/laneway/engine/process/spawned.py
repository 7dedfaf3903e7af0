"""Child processes whose end is noticed whatever handlers do with SIGCHLD."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple


class SocketPair(NamedTuple):
    """The line to a child: streams on our end, and both ends."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ours: socket.socket
    theirs: socket.socket


@asynccontextmanager
async def socket_pair() -> AsyncIterator[SocketPair]:
    """Open a line to a child that is started inside; our end is closed if that fails."""
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
    """A program started by the worker; a thread waits for its end.

    Event loops learn of it by SIGCHLD, which a handler can ignore, and by waitpid, which a handler
    that waits for all children can forestall.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[int] = self._loop.create_future()
        self._popen = subprocess.Popen(command, **options)
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
        """The exit code, once it has ended; a signal that ended it is negative."""
        return await asyncio.shield(self._gone)

    def kill(self) -> None:
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)

    def _watch(self) -> None:
        code = self._popen.wait()
        # Nobody waits for it any more where the loop is closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int) -> None:
        if not self._gone.done():
            self._gone.set_result(code)
