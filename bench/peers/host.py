"""The machine during a run: its own speed, and whether others used it."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

import psutil
import psycopg

from bench.peers.side import burn
from bench.server import Conn

LOOP = 50_000
COMMITS = 11
# Others used more than this share of all processors, or the fixed loop took so much longer.
FOREIGN_SHARE = 0.12
SLOWER = 1.3


def loop_ms() -> float:
    """The time of a fixed loop: the best of three."""

    def once() -> float:
        began = time.perf_counter()
        total = 0
        for number in range(LOOP):
            total += number * number % 7
        return time.perf_counter() - began

    return 1000 * min(once() for _ in range(3))


def burns_per_s() -> float:
    """Handlers of the CPU workload that one processor runs in a second, without a job system."""
    began = time.perf_counter()
    count = 0
    while time.perf_counter() - began < 0.3:
        burn()
        count += 1
    return count / (time.perf_counter() - began)


class CommitProbe:
    """The time that PostgreSQL takes to commit one row."""

    def __init__(self, dsn: str) -> None:
        self._conn: Conn = psycopg.connect(dsn, autocommit=True)
        self._conn.execute("create table if not exists commit_probe (number integer)")

    def ms(self) -> float:
        took = []
        for number in range(COMMITS):
            began = time.perf_counter()
            self._conn.execute("insert into commit_probe values (%s)", [number])
            took.append(time.perf_counter() - began)
        return 1000 * median(took)

    def close(self) -> None:
        self._conn.close()


def _busy_s() -> float:
    times = psutil.cpu_times()
    busy = times.user + times.nice + times.system
    return float(
        busy + getattr(times, "irq", 0) + getattr(times, "softirq", 0) + getattr(times, "steal", 0)
    )


def _ours_s(others: list[psutil.Process]) -> float:
    """Our own processor time: this process, its ended children, PostgreSQL and Redis."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for process in others:
        for one in [process, *process.children(recursive=True)]:
            try:
                times = one.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


@dataclass(slots=True)
class Weather:
    """The state of the machine during one run."""

    loop_ms: float = 0.0
    commit_ms: float = 0.0
    foreign_share: float = 0.0

    def is_noisy(self, usual_loop_ms: float) -> bool:
        return self.foreign_share > FOREIGN_SHARE or self.loop_ms > SLOWER * usual_loop_ms


class Watch:
    """Measures the machine around a run; the workers must have ended at its end."""

    def __init__(self, probe: CommitProbe, others: list[psutil.Process]) -> None:
        self._probe = probe
        self._others = others
        self.weather = Weather()

    def __enter__(self) -> Self:
        self.weather.loop_ms = loop_ms()
        self.weather.commit_ms = self._probe.ms()
        self._began = time.monotonic()
        self._busy, self._ours = _busy_s(), _ours_s(self._others)
        return self

    def __exit__(self, *error: object) -> None:
        seconds = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        foreign = (_busy_s() - self._busy) - (_ours_s(self._others) - self._ours)
        self.weather.foreign_share = max(0.0, foreign / seconds)
        self.weather.loop_ms = max(self.weather.loop_ms, loop_ms())


def describe() -> dict[str, str]:
    """The machine, for the report."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "processors": f"{psutil.cpu_count()} × {model}",
        "memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
    }
