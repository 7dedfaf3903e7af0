"""Programs of Laneway in processes forked after the imports.

A command takes 0.5 s in a new interpreter, nine tenths of it for imports, and 0.06 s here. A child
process of a worker imports pytest and a test's module besides. Tests of the imports, of the start
itself and of the command line of a process start a new interpreter.

`python -m tests.support.warm_program FD` forks a process for each request. It clones itself with
CLONE_PARENT, so the new process is a child of the test's process, as if Popen had started it: it
can be waited for, signalled and found, and it ends with its parent if it promises that.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import inspect
import json
import os
import platform
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, AnyStr, Self

from laneway.testing import faults

ROOT = Path(__file__).parents[2]
# Child processes of a worker.
CHILDREN = (
    "laneway.engine.lease.heartbeat_child",
    "laneway.engine.child.main",
    "laneway.rpc.worker.heartbeat_child",
)
# What commands and child processes import on first use, and what handlers of tests import.
_BEFOREHAND = (
    *CHILDREN,
    "laneway.app.laneway",
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
    "pytest",
    "rich.console",
    "rich.table",
    "tests.support.worker_harness",
)
_CLONE_PARENT = 0x8000
_PR_SET_PDEATHSIG = 1
# The number of the system call.
_CLONE = {("Linux", "x86_64"): 56, ("Linux", "aarch64"): 220}.get(
    (platform.system(), platform.machine())
)
_EXECUTE_CHILD = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]  # type: ignore[attr-defined]  # noqa: SLF001
_MOST_FILES = 8
_REQUEST_BYTES = 1 << 17


class WarmProgram:
    """A process that has imported Laneway and forks programs; started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None and self._socket is not None:
            self._socket.close()
            self._server.wait()

    @property
    def pid(self) -> int | None:
        return None if self._server is None else self._server.pid

    def is_ready(self) -> bool:
        """Whether it can fork at once; the first call starts it."""
        with self._lock:
            return bool(select.select([self._connection()], [], [], 0)[0])

    def fork(self, files: Mapping[int, int], **request: Any) -> int:
        """Fork a process with these descriptors, mapped to ours; `become` names the others."""
        text = json.dumps({**request, "fds": list(files)}).encode()
        with self._lock:
            connection = self._connection()
            assert connection.recv(16) == b"ready"
            socket.send_fds(connection, [text], list(files.values()))
            return int(connection.recv(16))

    def run(
        self,
        *args: object,
        env: Mapping[str, str],
        cwd: Path | None = None,
        input: str = "",  # noqa: A002
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of Laneway to its end, like `subprocess.run`."""
        command = [sys.executable, "-m", "laneway", *(str(arg) for arg in args)]
        pipe = subprocess.PIPE
        with WarmPopen(
            command, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as process:
            try:
                out, err = process.communicate(input, timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def _connection(self) -> socket.socket:
        if self._socket is None:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._server = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.warm_program", str(theirs.fileno())],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                )
        return self._socket


# The one of this process.
shared = WarmProgram()


class WarmPopen(subprocess.Popen[AnyStr]):
    """Forks `python -m MODULE` if it can; starts everything else as Popen does."""

    def _execute_child(self, *values: Any) -> None:
        given = dict(zip(_EXECUTE_CHILD, values, strict=True))
        command, is_tied = _without_tie(given["args"])
        module, args = _module_of(command)
        if module is None:
            super()._execute_child(*values)  # type: ignore[misc]
            return
        pipes = [given[name] for name in _EXECUTE_CHILD if name.endswith(("read", "write"))]
        standard = (given["p2cread"], given["c2pwrite"], given["errwrite"])
        files = {number: fd if fd >= 0 else number for number, fd in enumerate(standard)}
        try:
            self.pid = shared.fork(
                {**files, **{fd: fd for fd in given["pass_fds"]}},
                module=module,
                args=args,
                env=dict(os.environ if given["env"] is None else given["env"]),
                cwd=str(given["cwd"] or Path.cwd()),
                new_session=given["start_new_session"],
                is_tied=is_tied,
            )
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def _without_tie(command: Sequence[str]) -> tuple[Sequence[str], bool]:
    """The command that `faults.tied` was given, and whether it was."""
    tie = faults.tied([])
    return (command[len(tie) :], True) if tie and command[: len(tie)] == tie else (command, False)


def _module_of(command: Sequence[str]) -> tuple[str | None, list[str]]:
    """The module that can be forked now, and its arguments."""
    program, *words = command
    if words[:1] == ["-P"]:
        words = words[1:]
    if _CLONE is not None and program == sys.executable and words[:1] == ["-m"]:
        _, module, *args = words
        # Children of a worker do not wait for the imports: their worker's loop would.
        if module == "laneway" or (module in CHILDREN and shared.is_ready()):
            return module, args
    return None, []


# The process that forks -------------------------------------------------------------------------


def main(fd: int) -> str:
    """Fork a process for each request; return in that process the module that it runs."""
    for module in _BEFOREHAND:
        importlib.import_module(module)
    for module in CHILDREN:
        del sys.modules[module]  # executed again as the main module
    gc.freeze()
    server = socket.socket(fileno=fd)
    try:
        while True:
            server.send(b"ready")
            message, received, _, _ = socket.recv_fds(server, _REQUEST_BYTES, _MOST_FILES)
            if not message:
                os._exit(0)
            pid = fork_for_parent()
            if pid == 0:
                server.close()
                return become(received, **json.loads(message))
            for each in received:
                os.close(each)
            server.send(str(pid).encode())
    except BrokenPipeError:
        os._exit(0)


def fork_for_parent() -> int:
    """Fork like `os.fork`, but as a child of our parent. This process has no other thread."""
    system, python = ctypes.PyDLL(None, use_errno=True), ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid = int(system.syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone failed")
    return pid


def become(
    received: list[int],
    module: str,
    args: list[str],
    env: dict[str, str],
    cwd: str,
    fds: list[int],
    new_session: bool,
    is_tied: bool,
) -> str:
    """Take over what a new interpreter would get from the caller."""
    if is_tied:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if new_session:
        os.setsid()
    # First out of the way: a number that one gets may be that of another.
    above = max(fds) + 1
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for each in received]
    for each in received:
        os.close(each)
    for theirs, ours in zip(fds, moved, strict=True):
        os.dup2(ours, theirs)
        os.close(ours)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [module, *args]
    sys.orig_argv[:] = [sys.executable, "-m", module, *args]
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    return module


def run_to_end(module: str) -> None:
    """Run a module and end as Python does, but leave all modules in place.

    To take apart what the fork shares with its parent copies that first: it took longer than most
    commands. A module that ends by an exception returns to Python, which reports it.
    """
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise
        code = ending.code or 0
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    # Reports what was left open.
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python reports it
    os._exit(code & 0xFF)


if __name__ == "__main__":
    run_to_end(main(int(sys.argv[1])))
