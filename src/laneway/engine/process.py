"""A worker process's life between its signals: start, serve, stop on SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Protocol
from uuid import UUID

from laneway.config import Settings
from laneway.engine.executor import Executor
from laneway.engine.marker import Marker

log = logging.getLogger("laneway")

TICK_S = 1.0
# A supervisor says so when it was signalled a second time.
HURRY = signal.SIGUSR1


class AnyWorker(Protocol):
    """A worker, whatever it gets its jobs from."""

    id: UUID
    settings: Settings
    executor: Executor
    is_running: bool

    async def start(self, marker: Marker | None = None) -> None: ...
    async def stop(
        self, grace_s: float | None = None, hurry: asyncio.Event | None = None
    ) -> None: ...


def run_worker_process(make: Callable[[], AnyWorker], grace_s: float | None = None) -> int:
    """Runs a worker until it is told to stop; a second signal releases its jobs at once."""
    return run_loop(_serve(make, grace_s))


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Runs a process to its end, on the faster loop where there is one."""
    run: Callable[..., int] = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        run = uvloop.run
    return run(main)


async def _serve(make: Callable[[], AnyWorker], grace_s: float | None) -> int:
    worker = make()
    told, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        (hurry if told.is_set() and leash is None else told).set()

    def on_hurry() -> None:
        told.set()
        hurry.set()

    leash = _Leash.from_environment(on_hurry)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    if leash is not None:
        # Whoever stops a whole group signals us and our supervisor, which signals us again.
        loop.add_signal_handler(HURRY, on_hurry)
    starting = asyncio.ensure_future(worker.start(leash.marker if leash else None))
    stopping = asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return 0
        starting.result()
        if leash is not None:
            leash.introduce(worker)
            async with leash.ticking(worker.settings.loop_timeout / 4):
                await stopping
                await stop_worker(worker, grace_s, hurry)
        else:
            await stopping
            await stop_worker(worker, grace_s, hurry)
        return 0
    finally:
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)


async def stop_worker(worker: AnyWorker, grace_s: float | None, hurry: asyncio.Event) -> None:
    """Stops a worker, and says for what it waits: whoever told it to may be in a hurry."""
    wait_s = worker.settings.shutdown_grace if grace_s is None else grace_s
    n = len(worker.executor.active) if worker.is_running else 0
    if n and wait_s > 0:
        jobs = "1 job has" if n == 1 else f"{n:,} jobs have"
        log.info("stopping: %s %g s to end; a second Ctrl-C does not wait", jobs, wait_s)
    await worker.stop(grace_s, hurry)


class _Leash:
    """What ties a process to its supervisor: a pipe to tick into, and the shared mark."""

    def __init__(self, out: int, mark: int, watched: int, on_gone: Callable[[], None]) -> None:
        self._out = out
        self.marker = Marker(mark)
        # The supervisor holds the other end and never writes: readable means it is gone.
        asyncio.get_running_loop().add_reader(watched, self._gone, watched, on_gone)

    @classmethod
    def from_environment(cls, on_gone: Callable[[], None]) -> _Leash | None:
        ends = os.environ.pop("LANEWAY_LEASH", None)
        if not ends:
            return None
        out, mark, watched = map(int, ends.split(","))
        return cls(out, mark, watched, on_gone)

    @staticmethod
    def _gone(watched: int, on_gone: Callable[[], None]) -> None:
        asyncio.get_running_loop().remove_reader(watched)
        on_gone()

    def introduce(self, worker: AnyWorker) -> None:
        os.write(self._out, json.dumps({"worker": str(worker.id)}).encode() + b"\n")

    @contextlib.asynccontextmanager
    async def ticking(self, longest_s: float) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self._tick(min(TICK_S, longest_s)))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _tick(self, interval_s: float) -> None:
        while True:
            try:
                os.write(self._out, b"\n")
            except OSError:
                return
            await asyncio.sleep(interval_s)
