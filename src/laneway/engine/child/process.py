"""One child process as its worker sees it: started, spoken to, killed, waited for."""

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
# A program the handler has started may hold the socket of a dead child open; and a child that has
# closed its socket may live on.
LINGER_S = 0.5


class ChildProcess:
    """A fresh interpreter that shares nothing with the worker but a socket and a pipe."""

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
        # Clear while somebody still wants to hear what it has said.
        self.is_heard = asyncio.Event()
        self.is_heard.set()
        self.gone = asyncio.get_running_loop().create_task(self._wait(), name="laneway child")

    @classmethod
    async def start(cls, handshake: Message, memory_mb: int | None) -> ChildProcess:
        """A new child; it is ready when it answers its first job."""
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
                "kind": "hello",
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
        """The number of a new job on this child's wire; from now on it is listened to."""
        self.jobs += 1
        self.is_heard.clear()
        return self.jobs

    def send(self, message: Message) -> None:
        """Never waits: a child that does not read is a matter of its job's timeout."""
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def receive(self) -> Message | None:
        """The next message; None when there will be no more, or nothing that makes sense."""
        try:
            (size,) = HEAD.unpack(await self._reader.readexactly(HEAD.size))
            if size > LONGEST:
                return None
            return unpack(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError, ValueError):
            return None

    def kill(self) -> None:
        """Ends it and what it has started.

        SIGKILL at once: by then the handler has been told and had its grace, and SIGTERM would
        wait for the very GIL that a handler which does not listen may be holding.
        """
        if self.is_alive:
            try:
                # The group is the child's own (start_new_session), so programs it runs go along.
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, signal.SIGKILL)

    async def ended(self) -> str:
        """How it ended, once it has; one that only stopped talking is killed."""
        self.is_heard.set()
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
                await self.is_heard.wait()
        self._kept.let_go()
        self.output.close()
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        return code


def _spawn(fd: int, output: int) -> Spawned:
    """A program started anew rather than forked: no lock, connection or thread state of the worker
    comes along. -P: nothing in the current directory may pose as a module of Python's."""
    return Spawned(
        [sys.executable, "-P", "-m", CHILD_MODULE, str(fd)],
        stdin=DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(fd,),
        # Ctrl-C in a terminal is for the worker.
        start_new_session=True,
        # So that it finds Laneway; it puts the variable back as it was.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
