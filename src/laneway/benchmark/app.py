"""The handlers that the benchmark runs; they do as little as each figure allows."""

from __future__ import annotations

import time

from laneway.app.laneway import Laneway
from laneway.engine.run.context import Context
from laneway.store.benchmark import CPU, NAME, NOOP, STAMP

# Jobs between two readings of the process's CPU time.
EVERY = 200


class CpuLog:
    """The CPU time of this process, read again and again while jobs run."""

    def __init__(self) -> None:
        self._jobs = 0
        # Wall clock and CPU time, in seconds.
        self.readings: list[tuple[float, float]] = []

    def count(self) -> None:
        if self._jobs % EVERY == 0:
            self.readings.append((time.monotonic(), time.process_time()))
        self._jobs += 1


def make_app(dsn: str) -> Laneway:
    """The application on a database."""
    lw = Laneway(dsn)
    log = CpuLog()

    @lw.handler(NOOP, lane=NAME)
    async def noop(ctx: Context, text: str) -> None:
        log.count()

    @lw.handler(STAMP, lane=NAME)
    async def stamp(ctx: Context) -> int:
        """Return the time of its start, by the clock of the machine."""
        return time.time_ns()

    @lw.handler(CPU, lane=NAME)
    async def cpu(ctx: Context) -> list[tuple[float, float]]:
        return log.readings

    return lw
