"""The worker processes of the demo. A worker stops by itself when the demo is gone.

Each is connected by pipes as a supervisor's children are; here they also report the worker's id.
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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from laneway.engine.process.loop_marker import SIZE
from laneway.errors import LanewayError

APP = "laneway.demo.app:lw"
LIBRARY = "laneway.demo.library:lw"
READY_S = 60.0
STOP_S = 2.0


@dataclass(frozen=True)
class WorkerSpec:
    """A worker to start: the lanes that it serves, and the server of a remote one."""

    lanes: tuple[str, ...]
    app: str = APP
    server: str | None = None
    token: str | None = field(default=None, repr=False)

    def command(self, letter: str) -> list[str]:
        program = [sys.executable, "-m", "laneway"]
        name = f"--name={'gpu' if self.server else 'worker'}-{letter.lower()}"
        if self.server is None:
            return [*program, "worker", self.app, f"--lanes={','.join(self.lanes)}", name]
        return [*program, "remote-worker", self.app, f"--server={self.server}", name]

    def environment(self) -> dict[str, str]:
        if self.token is None:
            return dict(os.environ)
        # A remote worker has a token instead of a database.
        kept = {k: v for k, v in os.environ.items() if k != "LANEWAY_DATABASE_URL"}
        return {**kept, "LANEWAY_TOKEN": self.token}


class WorkerDidNotStart(LanewayError):
    """A worker process ended or timed out before it was ready."""


@dataclass(eq=False)
class DemoWorker:
    """One worker process, named by a letter."""

    letter: str
    spec: WorkerSpec
    process: asyncio.subprocess.Process
    log: Path
    pipes: tuple[int, int]
    worker_id: UUID | None = None
    is_ready: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lanes(self) -> tuple[str, ...]:
        return self.spec.lanes

    def kill(self) -> None:
        """Send SIGKILL, as the out-of-memory killer does."""
        self.process.send_signal(signal.SIGKILL)


class DemoWorkers:
    """Starts workers and replaces those that die, until stopped."""

    def __init__(self, home: Path, record: Callable[[str], None]) -> None:
        self._home = home
        self._record = record
        self._letters = iter(_letters())
        self._watches: set[asyncio.Task[None]] = set()
        self._letter_of: dict[UUID, str] = {}
        self._is_stopping = False
        self.alive: list[DemoWorker] = []
        # The worker inside the demo's process, if any.
        self.own: UUID | None = None

    def letter(self, worker_id: UUID | None) -> str:
        """The letter of a worker, also of one that is gone."""
        if worker_id is not None and worker_id == self.own:
            return "here"
        return self._letter_of.get(worker_id, "?") if worker_id is not None else "?"

    def is_alive(self, worker_id: UUID | None) -> bool:
        return worker_id is not None and (
            worker_id == self.own or self.holder(worker_id) is not None
        )

    def holder(self, worker_id: UUID | None) -> DemoWorker | None:
        """The living worker with this id."""
        return next((each for each in self.alive if each.worker_id == worker_id), None)

    async def start(self, spec: WorkerSpec) -> DemoWorker:
        """Start a worker process; return once it is ready."""
        worker = await self._launch(spec)
        watch = asyncio.create_task(self._watch(worker))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        ready = asyncio.ensure_future(worker.is_ready.wait())
        try:
            await asyncio.wait({ready, watch}, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if not worker.is_ready.is_set() and not self._is_stopping:
            raise WorkerDidNotStart(f"worker {worker.letter} did not start:\n{tail(worker.log)}")
        return worker

    async def stop(self, hurry: asyncio.Event) -> None:
        """Stop the workers: gracefully, then by SIGKILL."""
        self._is_stopping = True
        for worker in self.alive:
            with contextlib.suppress(ProcessLookupError):
                worker.process.terminate()
        hurried = asyncio.ensure_future(hurry.wait())
        gone = asyncio.ensure_future(self._all_gone())
        await asyncio.wait({gone, hurried}, timeout=STOP_S, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        for worker in self.alive:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
        await gone

    async def _all_gone(self) -> None:
        while self._watches:
            await asyncio.wait(self._watches)

    async def _launch(self, spec: WorkerSpec) -> DemoWorker:
        letter = next(self._letters)
        out_r, out_w = os.pipe()
        watched_r, alive_w = os.pipe()
        log = self._home / f"worker-{letter}.log"
        try:
            with tempfile.TemporaryFile(dir=self._home) as mark, log.open("ab") as output:
                mark.write(b"\0" * SIZE)
                mark.flush()
                process = await asyncio.create_subprocess_exec(
                    *spec.command(letter),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(out_w, mark.fileno(), watched_r),
                    env={
                        **spec.environment(),
                        "LANEWAY_SUPERVISOR_FDS": f"{out_w},{mark.fileno()},{watched_r}",
                    },
                    # Ctrl-C reaches only the demo, which then stops the workers.
                    start_new_session=True,
                )
        finally:
            os.close(out_w)
            os.close(watched_r)
        os.set_blocking(out_r, False)
        worker = DemoWorker(letter, spec, process, log, (out_r, alive_w))
        self.alive.append(worker)
        if self._is_stopping:
            worker.kill()
        asyncio.get_running_loop().add_reader(out_r, self._on_report, worker)
        return worker

    def _on_report(self, worker: DemoWorker) -> None:
        try:
            data = os.read(worker.pipes[0], 4096)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(worker.pipes[0])
        for line in filter(None, data.split(b"\n")):
            worker.worker_id = UUID(json.loads(line)["worker"])
            self._letter_of[worker.worker_id] = worker.letter
            worker.is_ready.set()

    async def _watch(self, worker: DemoWorker) -> None:
        code = await worker.process.wait()
        self.alive.remove(worker)
        asyncio.get_running_loop().remove_reader(worker.pipes[0])
        for end in worker.pipes:
            os.close(end)
        if self._is_stopping or not worker.is_ready.is_set():
            return
        self._record(f"worker {worker.letter} {_ending(code)}; starting another")
        try:
            successor = await self.start(worker.spec)
        except WorkerDidNotStart as error:
            self._record(str(error))
        else:
            if not self._is_stopping:
                self._record(f"worker {successor.letter} serves {', '.join(successor.lanes)}")


def tail(log: Path, lines: int = 8) -> str:
    """The end of a worker's log."""
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])
    return ""


def _letters() -> list[str]:
    return [*string.ascii_uppercase, *(f"W{n}" for n in range(27, 10_000))]


def _ending(code: int) -> str:
    if code < 0:
        return f"was killed with {signal.Signals(-code).name}"
    return f"ended with code {code}"
