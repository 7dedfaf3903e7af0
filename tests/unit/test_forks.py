"""A forked process loses Laneway's resources and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from laneway import forks


def in_fork(work: Callable[[], None]) -> int:
    """Run the work in a forked process; return its exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_forked_process_keeps_file_under_number_of_closed_one(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    kept = forks.Fds(reader)
    os.close(writer)
    # As an event loop does at the end of a stream.
    os.close(reader)
    path = tmp_path / "theirs"
    opened = os.open(path, os.O_WRONLY | os.O_CREAT)
    assert opened in (reader, writer)
    os.dup2(opened, reader)
    try:
        assert in_fork(lambda: print(os.write(reader, b"kept"))) == 0
        assert path.read_bytes() == b"kept"
    finally:
        kept.let_go()
        for fd in {opened, reader}:
            os.close(fd)


def test_forked_process_is_cut_off_from_owned_file(tmp_path: Path) -> None:
    path = tmp_path / "ours"
    ours = os.open(path, os.O_WRONLY | os.O_CREAT)
    kept = forks.Fds(ours)
    try:
        assert in_fork(lambda: print(os.write(ours, b"lost"))) == 0
        assert path.read_bytes() == b""
    finally:
        kept.let_go()
        os.close(ours)


def test_thread_forks_while_loop_is_in_debug_mode() -> None:
    """No signal stays blocked in the forked process."""

    def signals_are_open() -> None:
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
        assert forks.is_fork

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        forks.enter(loop)
        forks.own_signals([signal.SIGUSR2])
        try:
            thread = threading.Thread(target=lambda: codes.append(in_fork(signals_are_open)))
            thread.start()
            await asyncio.to_thread(thread.join)
        finally:
            forks.leave(loop)

    codes: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    asyncio.run(main())
    assert codes == [0]
