"""Counts of waits from submit to start, by second, and percentiles of a window."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from bench.endurance.plan import Window

# Neighbouring buckets differ by 2 %.
_STEP = math.log(1.02)
_SHORTEST_MS = 0.01


def bucket_of(ms: float) -> int:
    return round(math.log(max(ms, _SHORTEST_MS) / _SHORTEST_MS) / _STEP)


def ms_of(bucket: int) -> float:
    return _SHORTEST_MS * math.exp(bucket * _STEP)


class Second(NamedTuple):
    """The waits of the jobs that started in one second of the clock of the machine."""

    at: int
    waits: Counter[int]

    def to_line(self) -> str:
        return json.dumps([self.at, self.waits]) + "\n"


class WaitLog:
    """Writes a line per second with jobs."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._second = Second(0, Counter())

    def add(self, now_ns: int, wait_ns: int) -> None:
        at = now_ns // 1_000_000_000
        if at != self._second.at:
            self.flush()
            self._second = Second(at, Counter())
        self._second.waits[bucket_of(wait_ns / 1e6)] += 1

    def flush(self) -> None:
        if self._second.waits:
            self._file.write(self._second.to_line())

    def close(self) -> None:
        self.flush()
        self._file.close()


class Waits:
    """The waits of a run, at seconds from its start."""

    def __init__(self, seconds: list[Second], began: float) -> None:
        self._seconds = [(second.at + 0.5 - began, second.waits) for second in seconds]

    @classmethod
    def read(cls, path: Path, began: float) -> Waits:
        seconds = []
        for line in path.read_text().splitlines():
            at, waits = json.loads(line)
            seconds.append(Second(at, Counter({int(key): n for key, n in waits.items()})))
        return cls(seconds, began)

    def _within(self, window: Window) -> Counter[int]:
        found: Counter[int] = Counter()
        for at, waits in self._seconds:
            if at in window:
                found.update(waits)
        return found

    def rate(self, window: Window) -> float:
        """Jobs that started per second."""
        return self._within(window).total() / window.seconds

    def percentile_ms(self, window: Window, percent: float) -> float:
        """The wait that so many percent of the jobs did not exceed; NaN without jobs."""
        found = self._within(window)
        left = found.total() * percent / 100
        for bucket in sorted(found):
            left -= found[bucket]
            if left <= 0:
                return ms_of(bucket)
        return math.nan
