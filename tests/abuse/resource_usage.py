"""What a process has used, read from outside: processor time, time in the run queue, memory."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NS = 1e9


@dataclass(frozen=True)
class Used:
    """Seconds on a processor and seconds ready to run but without one; of each thread."""

    threads: dict[str, tuple[float, float]]

    def since(self, before: Used) -> tuple[float, float]:
        """Both, summed over the threads that are still there."""
        cpu = waited = 0.0
        for name, (ran, queued) in self.threads.items():
            old = before.threads.get(name, (0.0, 0.0))
            cpu += ran - old[0]
            waited += queued - old[1]
        return cpu, waited


def used(pid: int) -> Used:
    """As the scheduler counts it, in nanoseconds and not in ticks."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            ran, queued, _ = (task / "schedstat").read_text("ascii").split()
            found[task.name] = int(ran) / _NS, int(queued) / _NS
    return Used(found)


def blocked_s(took_s: float, before: Used, after: Used, own_wait_s: float) -> float:
    """How much of the time that an answer took was the server's own doing.

    Its processor time is. What is left of the time after it stood in the run queue, or we did, is
    too: there it slept. On a machine that others keep busy nearly all of it is their doing.
    """
    cpu, waited = after.since(before)
    return max(min(took_s, cpu), took_s - waited - own_wait_s)


class Memory:
    """The memory of a process since a moment: at its peak, and what is left of it."""

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
        """Seconds that passed, that the process ran, and for which it alone was to blame."""
        took = time.monotonic() - self._began
        now, own = used(self._pid), used(os.getpid())
        cpu, _ = now.since(self._before)
        _, own_wait = own.since(self._own)
        return took, cpu, blocked_s(took, self._before, now, own_wait)
