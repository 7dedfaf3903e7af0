"""A workload as the runner sees it, and what its runs share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from bench.peers.places import Place
from bench.peers.postgres import Postgres
from bench.peers.redis import Redis
from bench.peers.system import System
from bench.peers.workers import Workers

Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """Counts of a run. A slow system gets as many jobs as it runs in `seconds`."""

    rounds: int = 5
    drain: int = 20_000
    drain_many: int = 60_000
    submit_many: int = 20_000
    submit: int = 300
    starts: int = 100
    held: int = 50_000
    handlers: int = 10_000
    cpu: int = 1_500
    backlog: int = 1_000_000
    backlog_small: int = 10_000
    backlog_drain: int = 20_000
    seconds: float = 4.0
    idle_before_s: float = 5.0
    idle_s: float = 30.0
    idle_rounds: int = 3

    def bounded(self, count: int, system: System) -> int:
        return max(20, min(count, int(system.pace * self.seconds)))


QUICK = Scale(
    rounds=1,
    drain=3_000,
    drain_many=4_000,
    submit_many=3_000,
    submit=30,
    starts=20,
    held=4_000,
    handlers=500,
    cpu=100,
    backlog=20_000,
    backlog_small=2_000,
    backlog_drain=2_000,
    seconds=1.0,
    idle_before_s=2.0,
    idle_s=4.0,
    idle_rounds=1,
)


@dataclass(slots=True)
class Lab:
    """The servers and the counts that workloads use."""

    postgres: Postgres
    scale: Scale
    # Filled backlogs: the database of each system.
    backlogs: dict[str, str] = field(default_factory=dict)
    # The time that filling them took; it is not the time of a run.
    filling_s: float = 0.0
    _redis: Redis | None = None

    @property
    def redis(self) -> Redis:
        if self._redis is None:
            self._redis = Redis()
        return self._redis

    @property
    def has_redis(self) -> bool:
        return self._redis is not None

    @contextlib.contextmanager
    def place(self, system: System) -> Iterator[Place]:
        """A fresh place without jobs."""
        if system.broker == "redis":
            with self.redis.place(system) as emptied:
                yield emptied
        else:
            with self.postgres.place(system) as fresh:
                yield fresh

    def close(self) -> None:
        if self._redis is not None:
            self._redis.close()


class Workload(Protocol):
    """One kind of load. `main` is the value that is compared; the others are shown beside it."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def main(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def is_lower_better(self) -> bool: ...

    def run(self, lab: Lab, system: System) -> Values: ...


@dataclass(frozen=True, slots=True)
class Drained:
    """A drain from the first handler's start to the last commit."""

    rate: float
    cpu_worker_us: float
    cpu_store_us: float
    wal_bytes: float
    resident_mb: float
    is_cut: bool


def drain(workers: Workers, count: int, within_s: float) -> Drained:
    """Freeze warm workers, submit jobs, let all continue at once and wait for the end."""
    place = workers.place
    workers.freeze()
    place.clean_up()
    workers.submit_many(count)
    place.analyze()
    workers.mark()
    before, cpu = place.counters(), workers.cpu_s()
    workers.resume()
    has_ended = workers.await_count(count, within_s) and workers.await_settled(10.0)
    now_us = time.time_ns() // 1000
    cpu_worker = workers.cpu_s() - cpu
    after = place.counters()
    seen = workers.read()
    done = seen.count
    until_us = now_us if has_ended else seen.last_us
    assert done, f"{workers.system.name}: no job ran within {within_s:g} s"
    return Drained(
        rate=done / max(until_us - seen.first_us, 1) * 1e6,
        cpu_worker_us=cpu_worker / done * 1e6,
        cpu_store_us=(after.cpu_s - before.cpu_s) / done * 1e6,
        wal_bytes=(after.wal_bytes - before.wal_bytes) / done,
        resident_mb=workers.memory_mb()[0],
        is_cut=not has_ended,
    )
