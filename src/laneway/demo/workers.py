"""The worker processes of the demo, each on a leash: a worker whose demo is gone stops by itself.

The leash is the one by which a supervisor holds its children; here it also tells the worker's id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import string
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from laneway.engine.process.loop_marker import SIZE
from laneway.errors import LanewayError

APP = "laneway.demo.app:lw"
READY_S = 60.0
STOP_S = 2.0


class WorkerDidNotStart(LanewayError):
    """A worker process ended, or stayed silent, before it could serve."""


@dataclass(eq=False)
class DemoWorker:
    """One worker process, under a letter that people can remember."""

    letter: str
    lanes: tuple[str, ...]
    process: asyncio.subprocess.Process
    log: Path
    leash: tuple[int, int]
    worker_id: UUID | None = None
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)

    def kill(self) -> None:
        """kill -9, as the out-of-memory killer would."""
        self.process.send_signal(signal.SIGKILL)


class DemoWorkers:
    """Starts workers and replaces those that die, until it is stopped."""

    def __init__(self, home: Path, tell: Callable[[str], None]) -> None:
        self._home = home
        self._tell = tell
        self._letters = iter(_letters())
        self._watches: set[asyncio.Task[None]] = set()
        self._letter_of: dict[UUID, str] = {}
        self._is_stopping = False
        self.members: list[DemoWorker] = []

    def letter(self, worker_id: UUID | None) -> str:
        """What people here call a worker, also one that is gone."""
        return self._letter_of.get(worker_id, "?") if worker_id is not None else "?"

    def holder(self, worker_id: UUID | None) -> DemoWorker | None:
        """The living worker with this id."""
        return next((each for each in self.members if each.worker_id == worker_id), None)

    async def start(self, *lanes: str) -> DemoWorker:
        """A worker process that serves these lanes, once it does."""
        member = await self._launch(lanes)
        watch = asyncio.create_task(self._watch(member))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        ready = asyncio.ensure_future(member.is_ready.wait())
        try:
            await asyncio.wait({ready, watch}, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if not member.is_ready.is_set() and not self._is_stopping:
            raise WorkerDidNotStart(f"worker {member.letter} did not start:\n{tail(member.log)}")
        return member

    async def stop(self, hurry: asyncio.Event) -> None:
        """Lets the workers finish, but not for long."""
        self._is_stopping = True
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.process.terminate()
        hurried = asyncio.ensure_future(hurry.wait())
        gone = asyncio.ensure_future(self._all_gone())
        await asyncio.wait({gone, hurried}, timeout=STOP_S, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.kill()
        await gone

    async def _all_gone(self) -> None:
        while self._watches:
            await asyncio.wait(self._watches)

    async def _launch(self, lanes: Sequence[str]) -> DemoWorker:
        letter = next(self._letters)
        command = [sys.executable, "-m", "laneway", "worker", APP, f"--lanes={','.join(lanes)}"]
        out_r, out_w = os.pipe()
        watched_r, leash_w = os.pipe()
        log = self._home / f"worker-{letter}.log"
        try:
            with tempfile.TemporaryFile(dir=self._home) as mark, log.open("ab") as output:
                mark.write(b"\0" * SIZE)
                mark.flush()
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(out_w, mark.fileno(), watched_r),
                    env={
                        **os.environ,
                        "LANEWAY_LEASH": f"{out_w},{mark.fileno()},{watched_r}",
                    },
                    # Ctrl-C reaches us; the workers hear of it from us.
                    start_new_session=True,
                )
        finally:
            os.close(out_w)
            os.close(watched_r)
        os.set_blocking(out_r, False)
        member = DemoWorker(letter, tuple(lanes), process, log, (out_r, leash_w))
        self.members.append(member)
        if self._is_stopping:
            member.kill()
        asyncio.get_running_loop().add_reader(out_r, self._hear, member)
        return member

    def _hear(self, member: DemoWorker) -> None:
        try:
            data = os.read(member.leash[0], 4096)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(member.leash[0])
        for line in filter(None, data.split(b"\n")):
            member.worker_id = UUID(json.loads(line)["worker"])
            self._letter_of[member.worker_id] = member.letter
            member.is_ready.set()

    async def _watch(self, member: DemoWorker) -> None:
        code = await member.process.wait()
        self.members.remove(member)
        asyncio.get_running_loop().remove_reader(member.leash[0])
        for end in member.leash:
            os.close(end)
        if self._is_stopping or not member.is_ready.is_set():
            return
        self._tell(f"worker {member.letter} {_how(code)}; another takes its place")
        try:
            successor = await self.start(*member.lanes)
        except WorkerDidNotStart as error:
            self._tell(str(error))
        else:
            if not self._is_stopping:
                self._tell(f"worker {successor.letter} serves {', '.join(successor.lanes)}")


def tail(log: Path, lines: int = 8) -> str:
    """The end of a worker's log."""
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])
    return ""


def _letters() -> list[str]:
    return [*string.ascii_uppercase, *(f"W{n}" for n in range(27, 10_000))]


def _how(code: int) -> str:
    if code < 0:
        return f"was killed with {signal.Signals(-code).name}"
    return f"ended with code {code}"
