"""The worker's side of one child process: start, send, receive, kill, wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from subprocess import DEVNULL

from laneway import forks
from laneway.engine.child.output import ChildOutput
from laneway.engine.child.wire import HEAD, LONGEST, Message, pack, unpack
from laneway.engine.process.spawned import Spawned, socket_pair

CHILD_MODULE = "laneway.engine.child.main"
# Time to wait for the socket of a dead child, which a program that it started may hold open. And
# for the exit of a child that closed its socket.
LINGER_S = 0.5


class ChildProcess:
    """A new interpreter that shares only a socket and a pipe with the worker."""

    def __init__(
        self,
        process: Spawned,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        memory_mb: int | None,
        kept: forks.Fds,
        output: ChildOutput,
    ) -> None:
        self._process = process
        self._kept = kept
        self.output = output
        self._reader = reader
        self._writer = writer
        self.pid = process.pid
        self.memory_mb = memory_mb
        self.jobs = 0
        self.idle_since = 0.0
        # Clear while messages of a job are still being read.
        self.is_read = asyncio.Event()
        self.is_read.set()
        self.gone = asyncio.get_running_loop().create_task(self._wait(), name="laneway child")

    @classmethod
    async def start(cls, handshake: Message, memory_mb: int | None) -> ChildProcess:
        """Start a child; it is ready when it answers its first job."""
        async with socket_pair() as (reader, writer, ours, theirs):
            output, written = await ChildOutput.open()
            try:
                process = _spawn(theirs.fileno(), written)
            except BaseException:
                output.close()
                raise
            finally:
                os.close(written)
        child = cls(process, reader, writer, memory_mb, forks.Fds(ours.fileno()), output)
        child.send(
            {
                "kind": "handshake",
                "parent": os.getpid(),
                "path": sys.path,
                "argv": sys.argv,
                "python_path": os.environ.get("PYTHONPATH"),
                "memory_mb": memory_mb,
                **handshake,
            }
        )
        return child

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    def take_job(self) -> int:
        """The number of a new job on this child's socket."""
        self.jobs += 1
        self.is_read.clear()
        return self.jobs

    def send(self, message: Message) -> None:
        """Send without waiting: the job's timeout handles a child that does not read."""
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def receive(self) -> Message | None:
        """Receive the next message; None at the end or after an invalid message."""
        try:
            (size,) = HEAD.unpack(await self._reader.readexactly(HEAD.size))
            if size > LONGEST:
                return None
            return unpack(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError, ValueError):
            return None

    def kill(self) -> None:
        """Kill the child and the programs that it started.

        SIGKILL at once: the handler already had its grace, and SIGTERM would need the GIL, which
        the handler may hold.
        """
        if self.is_alive:
            try:
                # The child leads its own process group (start_new_session).
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, signal.SIGKILL)

    async def ended(self) -> str:
        """Wait for the exit and describe it; kill a child that only closed its socket."""
        self.is_read.set()
        try:
            async with asyncio.timeout(LINGER_S):
                code = await asyncio.shield(self.gone)
        except TimeoutError:
            self.kill()
            code = await asyncio.shield(self.gone)
        return _exit_text(code)

    async def _wait(self) -> int:
        code = await self._process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self.is_read.wait()
        self._kept.let_go()
        self.output.close()
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        return code


def _spawn(fd: int, output: int) -> Spawned:
    """Start a new program instead of a fork, without locks, connections or threads of the worker.

    -P keeps files of the current directory from shadowing Python's modules.
    """
    return Spawned(
        [sys.executable, "-P", "-m", CHILD_MODULE, str(fd)],
        stdin=DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(fd,),
        # Keep Ctrl-C in a terminal from the child.
        start_new_session=True,
        # The child needs it to find Laneway, and then restores the variable.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
