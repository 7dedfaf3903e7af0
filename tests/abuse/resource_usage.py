"""Resource usage of a process: processor time, time in the run queue, memory."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NS = 1e9


@dataclass(frozen=True)
class Used:
    """Seconds on a processor, and seconds in the run queue, of each thread."""

    threads: dict[str, tuple[float, float]]

    def since(self, before: Used) -> tuple[float, float]:
        """Both differences, summed over the threads that still exist."""
        cpu = waited = 0.0
        for name, (ran, queued) in self.threads.items():
            old = before.threads.get(name, (0.0, 0.0))
            cpu += ran - old[0]
            waited += queued - old[1]
        return cpu, waited


def used(pid: int) -> Used:
    """Read the scheduler's counters, which count nanoseconds instead of ticks."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            ran, queued, _ = (task / "schedstat").read_text("ascii").split()
            found[task.name] = int(ran) / _NS, int(queued) / _NS
    return Used(found)


def blocked_s(took_s: float, before: Used, after: Used, own_wait_s: float) -> float:
    """The part of a response's time that the server caused.

    That is its processor time, and the time in which it slept: what remains after the run queue
    times of server and client. On a busy machine other processes cause nearly all of the time.
    """
    cpu, waited = after.since(before)
    return max(min(took_s, cpu), took_s - waited - own_wait_s)


class Memory:
    """The growth of a process's memory since a moment: the peak and the current value."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        # Reset the peak.
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
        self._before = self._read("VmRSS")

    def _read(self, name: str) -> float:
        for line in self._status.read_text("ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise LookupError(name)

    @property
    def peak_mb(self) -> float:
        return self._read("VmHWM") - self._before

    @property
    def kept_mb(self) -> float:
        return self._read("VmRSS") - self._before


class Watch:
    """The processor time of a process and the wall time since a moment."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began, self._before = time.monotonic(), used(pid)
        self._own = used(os.getpid())

    def read(self) -> tuple[float, float, float]:
        """Wall time, processor time, and the time that the process alone caused."""
        took = time.monotonic() - self._began
        now, own = used(self._pid), used(os.getpid())
        cpu, _ = now.since(self._before)
        _, own_wait = own.since(self._own)
        return took, cpu, blocked_s(took, self._before, now, own_wait)
