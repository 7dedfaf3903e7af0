"""`laneway` in processes forked after the imports: python -m tests.support.warm_program FD.

A short command takes 0.5 s in a new interpreter, nine tenths of it for imports, and 0.06 s here.
Tests of signals, of pipes and of the imports themselves start a new interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
# What the commands import on first use.
_BEFOREHAND = (
    "laneway.app.server",
    "laneway.app.worker_process",
    "laneway.cli.backends.database",
    "laneway.cli.db",
    "laneway.cli.doctor",
    "laneway.cli.jobs",
    "laneway.cli.lanes",
    "laneway.cli.tables",
    "laneway.cli.watch",
    "laneway.cli.worker",
    "laneway.embedded.postgres",
    "rich.console",
    "rich.table",
)
_PR_SET_PDEATHSIG = 1
_REQUEST_BYTES = 1 << 17


class WarmProgram:
    """A process that has imported Laneway and forks one command after the other."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm_program", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._server.wait()

    def run(
        self,
        *args: object,
        env: Mapping[str, str],
        cwd: Path | None = None,
        input: str = "",  # noqa: A002
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, like `subprocess.run`."""
        words = [str(arg) for arg in args]
        request = {"args": words, "env": dict(env), "cwd": str(cwd or Path.cwd())}
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
            files[0].write(input)
            files[0].seek(0)
            fds = [file.fileno() for file in files]
            socket.send_fds(self._socket, [json.dumps(request).encode()], fds)
            self._socket.settimeout(timeout)
            try:
                code = int(self._socket.recv(16))
            except TimeoutError:
                self._server.kill()
                raise
            for file in files[1:]:
                file.seek(0)
            return subprocess.CompletedProcess(words, code, files[1].read(), files[2].read())


def main(fd: int) -> None:
    """Fork a process for each request; return in that process, ready to run the command."""
    for module in _BEFOREHAND:
        importlib.import_module(module)
    gc.freeze()
    server = socket.socket(fileno=fd)
    while True:
        message, fds, _, _ = socket.recv_fds(server, _REQUEST_BYTES, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            server.close()
            become(fds, **json.loads(message))
            return
        for each in fds:
            os.close(each)
        _, status = os.waitpid(pid, 0)
        server.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(fds: list[int], args: list[str], env: dict[str, str], cwd: str) -> None:
    """Take over what a new interpreter would get from the caller."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for ours, theirs in enumerate(fds):
        os.dup2(theirs, ours)
        os.close(theirs)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["laneway", *args]
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]


if __name__ == "__main__":
    main(int(sys.argv[1]))
    runpy.run_module("laneway", run_name="__main__", alter_sys=True)
