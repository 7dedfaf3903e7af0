"""The load of a drain: of the worker, of connections to the database, and of the machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from laneway.errors import LanewayError
from laneway.store.benchmark import ActiveConnection, sample_connections
from laneway.store.database import Database

Work = Literal["cpu", "commit", "standby", "lock", "read", "other"]
INTERVAL_S: Final = 0.02
_STAT: Final = Path("/proc/stat")


def work_of(connection: ActiveConnection) -> Work:
    """Classify the work of an active connection at one moment."""
    kind, event = connection.wait_type, (connection.wait_event or "").lower()
    if kind is None:
        return "cpu"
    # WALSync and WALWrite before PostgreSQL 17, WalSync and WalWrite since.
    if event.startswith("wal"):
        return "commit"
    if event == "syncrep":
        return "standby"
    if kind in ("Lock", "LWLock", "BufferPin"):
        return "lock"
    return "read" if kind == "IO" else "other"


@dataclass(slots=True)
class ConnectionSamples:
    """Samples of the worker's connections; each share is of all samples."""

    taken: int = 0
    _by_pid: dict[int, Counter[Work]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, active: Iterable[ActiveConnection]) -> None:
        self.taken += 1
        for connection in active:
            self._by_pid[connection.pid][work_of(connection)] += 1

    def busiest(self) -> dict[Work, float]:
        """Shares of the time of the busiest connection, by its work."""
        found = max(self._by_pid.values(), key=lambda one: one.total(), default=Counter[Work]())
        return {work: count / self.taken for work, count in found.items()}

    def cores(self) -> float:
        """Processors that all connections together kept busy."""
        computing = sum(one["cpu"] for one in self._by_pid.values())
        return computing / self.taken if self.taken else 0.0


@contextlib.asynccontextmanager
async def sampled(db: Database) -> AsyncIterator[ConnectionSamples]:
    """Sample the connections of the worker in the background."""
    samples = ConnectionSamples()

    async def sample() -> None:
        while True:
            with contextlib.suppress(LanewayError):
                active = await db.run(sample_connections())
                samples.add(active)
            await asyncio.sleep(INTERVAL_S)

    task = asyncio.ensure_future(sample())
    try:
        yield samples
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class MachineTimes:
    """Busy and total time of all processors of this machine since its start, in ticks."""

    busy: int
    total: int

    @classmethod
    def read(cls) -> MachineTimes | None:
        """None where the system has no /proc."""
        try:
            ticks = [int(word) for word in _STAT.read_text().splitlines()[0].split()[1:9]]
        except (OSError, ValueError, IndexError):
            return None
        # user, nice, system, idle, iowait, irq, softirq, steal
        idle = ticks[3] + ticks[4]
        return cls(sum(ticks) - idle, sum(ticks))

    def busy_share(self, later: MachineTimes) -> float:
        passed = later.total - self.total
        return (later.busy - self.busy) / passed if passed else 0.0


def cores_used(readings: Sequence[Sequence[float]]) -> float:
    """Processors that a process used, from its readings of the clock and of its CPU time.

    Leaves out the first fifth, in which connections are opened and statements are planned.
    """
    steady = readings[len(readings) // 5 :]
    if len(steady) < 2:
        return 0.0
    (began, cpu), (ended, cpu_then) = steady[0], steady[-1]
    return (cpu_then - cpu) / (ended - began) if ended > began else 0.0
