"""The life of a worker process: start, serve, stop on SIGTERM, SIGINT or SIGHUP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from types import FrameType
from typing import Any, Final

from laneway import forks
from laneway.engine.process.collector import collect_less_often
from laneway.engine.process.deadline import Deadline
from laneway.engine.process.health import WorkerHealth
from laneway.engine.process.loop_marker import LoopMarker
from laneway.engine.runtime import WorkerRuntime
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

TICK_S = 1.0
TO_STOP: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# How often the worker checks that its signal handlers are still installed.
KEEP_S = 0.5
# The supervisor sends this at its second signal: stop now.
HURRY = signal.SIGUSR1


def run_worker_process(
    make: Callable[[], WorkerRuntime],
    grace_s: float | None = None,
    health: WorkerHealth | None = None,
) -> int:
    """Run a worker until a signal stops it; a second signal releases its jobs at once."""
    collect_less_often()
    deadline = Deadline()
    code = run_loop(_serve(make, grace_s, deadline, health))
    deadline.leave(code)
    return code


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine to its end, on uvloop if it is installed."""
    run: Callable[..., int] = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        run = uvloop.run
    return run(main)


async def _serve(
    make: Callable[[], WorkerRuntime],
    grace_s: float | None,
    deadline: Deadline,
    health: WorkerHealth | None,
) -> int:
    worker = make()
    if health is not None:
        health.watch(worker)
    stop, hurry = asyncio.Event(), asyncio.Event()
    within_s = worker.settings.shutdown_grace if grace_s is None else grace_s

    def on_signal() -> None:
        (hurry if stop.is_set() and link is None else stop).set()

    def on_hurry() -> None:
        deadline.begin(0.0)
        stop.set()
        hurry.set()

    link = _SupervisorLink.from_environment(on_hurry)
    signals = Signals(deadline, within_s, is_alone=link is None)
    signals.handle(TO_STOP, on_signal)
    if link is not None:
        # A signal to the whole group comes twice, from the sender and from the supervisor. So
        # only this signal means to hurry.
        signals.handle((HURRY,), on_hurry)
    keeping = asyncio.ensure_future(signals.keep(health.turned if health else None))
    starting = asyncio.ensure_future(worker.start(link.marker if link else None))
    stopping = asyncio.ensure_future(_first(stop, worker.spent))
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            signals.ignore()
            return 0
        starting.result()
        if link is not None:
            link.register(worker)
            async with link.ticking(worker.settings.loop_timeout / 4):
                await stopping
                await stop_worker(worker, grace_s, hurry, is_supervised=True)
        else:
            await stopping
            await stop_worker(worker, grace_s, hurry)
        # Called before asyncio waits for its threads.
        deadline.leave(0)
        signals.ignore()
        return 0
    except BaseException:
        signals.restore()
        raise
    finally:
        for task in (stopping, keeping):
            task.cancel()
        await asyncio.gather(stopping, keeping, return_exceptions=True)


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


class Signals:
    """Passes signals to the event loop; starts the deadline even while the loop is blocked."""

    def __init__(self, deadline: Deadline, grace_s: float, *, is_alone: bool = True) -> None:
        """`is_alone`: without a supervisor, so that a second signal hurries the stop."""
        self._deadline = deadline
        self._grace_s = grace_s
        self._is_alone = is_alone
        self._loop = asyncio.get_running_loop()
        self._count = 0
        self._ours: dict[int, Callable[[int, FrameType | None], None]] = {}
        self._before: dict[int, Any] = {}

    def handle(self, numbers: Iterable[int], do: Callable[[], None]) -> None:
        """Call `do` on the loop for each of these signals; a SIGHUP that is ignored stays so."""

        def on_signal(number: int, frame: FrameType | None) -> None:
            self._count += 1
            if self._count == 1 or self._is_alone:
                self._deadline.begin(self._grace_s if self._count == 1 else 0.0)
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(do)

        for number in numbers:
            # nohup has SIGHUP ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, on_signal)
                self._ours[number] = on_signal
        forks.own_signals(self._ours)

    def ignore(self) -> None:
        """Ignore signals while the process exits, so that they cannot change its exit code."""
        for number in self._ours:
            signal.signal(number, signal.SIG_IGN)

    def restore(self) -> None:
        """Restore the previous signal handlers: the process may go on."""
        for number, before in self._before.items():
            signal.signal(number, before)

    async def keep(self, on_look: Callable[[], None] | None = None) -> None:
        """Reinstall signal handlers that a job's handler replaced, so that the worker can stop."""
        while True:
            await asyncio.sleep(KEEP_S)
            if on_look is not None:
                on_look()
            for number, ours in self._ours.items():
                if signal.getsignal(number) is not ours:
                    log.warning(
                        "a job's handler replaced the worker's handler of %s: restored",
                        signal.Signals(number).name,
                    )
                    signal.signal(number, ours)


async def stop_worker(
    worker: WorkerRuntime,
    grace_s: float | None,
    hurry: asyncio.Event,
    *,
    is_supervised: bool = False,
) -> None:
    """Stop a worker; log what it waits for and how to stop it at once."""
    wait_s = worker.settings.shutdown_grace if grace_s is None else grace_s
    n = len(worker.executor.active) if worker.is_running else 0
    if n and wait_s > 0:
        jobs = "1 job has" if n == 1 else f"{n:,} jobs have"
        again = "signal its supervisor again" if is_supervised else "Ctrl-C or SIGTERM again"
        log.info("stopping: %s %g s to end; %s to stop now", jobs, wait_s, again)
    await worker.stop(grace_s, hurry)


class _SupervisorLink:
    """The link of a process to its supervisor: pipes in both directions and the shared marker."""

    def __init__(self, out: int, mark: int, watched: int, on_gone: Callable[[], None]) -> None:
        self._out = out
        self._kept = forks.Fds(out, mark, watched)
        for fd in (out, mark, watched):
            # Programs started by handlers must not inherit them.
            os.set_inheritable(fd, False)
        self.marker = LoopMarker(mark)
        # The supervisor holds the other end and never writes: readable means it is gone.
        asyncio.get_running_loop().add_reader(watched, self._gone, watched, on_gone)

    @classmethod
    def from_environment(cls, on_gone: Callable[[], None]) -> _SupervisorLink | None:
        ends = os.environ.pop("LANEWAY_SUPERVISOR_FDS", None)
        if not ends:
            return None
        # The number of the process may follow.
        out, mark, watched = map(int, ends.split(",")[:3])
        return cls(out, mark, watched, on_gone)

    @staticmethod
    def _gone(watched: int, on_gone: Callable[[], None]) -> None:
        asyncio.get_running_loop().remove_reader(watched)
        on_gone()

    def register(self, worker: WorkerRuntime) -> None:
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
