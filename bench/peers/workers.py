"""Worker processes of a system during one run: start, freeze, continue, reports, end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil

from bench.peers.places import Place, cpu_s
from bench.peers.programs import ProgramFailed, environment, run_program
from bench.peers.system import ROOT, System

READY_S = 90.0
POLL_S = 0.003
FREEZE_S = 0.05
FREEZE_TRIES = 100
WARM_UP = 200
WARM_UP_SLOW = 20
WARM_UP_TURNS = 4


@dataclass(slots=True)
class Seen:
    """The reports of all processes since the last mark."""

    count: int = 0
    first_us: int = 0
    last_us: int = 0
    waited_us: list[int] = field(default_factory=list)
    # The running total with its time, for rates between two points.
    points: list[tuple[int, int]] = field(default_factory=list)


class Workers:
    """Warm worker processes; killed with everything they started on exit."""

    def __init__(
        self, system: System, place: Place, processes: int = 1, work: str = "noop"
    ) -> None:
        self.system = system
        self.place = place
        self.count = processes
        self._work = work
        self._processes: list[subprocess.Popen[bytes]] = []
        self._home = Path(tempfile.mkdtemp(prefix="laneway-bench-reports-"))
        self._report = self._home / "report.jsonl"
        self._log = self._home / "workers.log"
        self._report.touch()
        self._offset = 0
        self._partial = b""
        self._totals: dict[int, int] = {}
        self._ready: set[int] = set()
        self.seen = Seen()

    def __enter__(self) -> Self:
        variables = {
            **self.place.variables,
            "PEERS_REPORT": str(self._report),
            "PEERS_WORK": self._work,
        }
        try:
            with self._log.open("wb") as log:
                for _ in range(self.count):
                    self._processes.append(
                        subprocess.Popen(
                            self.system.work_command(),
                            cwd=ROOT,
                            env=environment(self.system, variables),
                            stdin=subprocess.PIPE,
                            stdout=log,
                            stderr=log,
                            start_new_session=True,
                        )
                    )
            self._await_ready()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Kill all processes; once is enough."""
        for process in self._processes:
            # Stopped processes die too.
            self._signal(process, signal.SIGKILL)
        for process in self._processes:
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        self._processes.clear()
        shutil.rmtree(self._home, ignore_errors=True)

    def _signal(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    def freeze(self) -> None:
        """Stop all processes at a moment when none of them holds a transaction open."""
        for _ in range(FREEZE_TRIES):
            for process in self._processes:
                self._signal(process, signal.SIGSTOP)
            # A statement that is under way ends without its client.
            deadline = time.monotonic() + FREEZE_S
            while time.monotonic() < deadline:
                if self.place.is_at_rest():
                    return
                time.sleep(POLL_S)
            self.resume()
            time.sleep(FREEZE_S * random.random())
        raise ProgramFailed(f"{self.system.name}: idle workers always hold a transaction open")

    def resume(self) -> None:
        """Let all processes continue at once."""
        for process in self._processes:
            self._signal(process, signal.SIGCONT)

    def cpu_s(self) -> float:
        """The processor time of all worker processes so far."""
        return sum(cpu_s(psutil.Process(process.pid)) for process in self._processes)

    def memory_mb(self) -> tuple[float, float]:
        """Memory per worker: resident, and with shared pages divided among their users."""
        resident = proportional = 0
        for process in self._processes:
            root = psutil.Process(process.pid)
            for one in [root, *root.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    full = one.memory_full_info()
                    resident += full.rss
                    proportional += full.pss
        return resident / 1e6 / self.count, proportional / 1e6 / self.count

    def check(self) -> None:
        """Raise if a process has ended."""
        if any(process.poll() is not None for process in self._processes):
            output = self._log.read_text(errors="replace")[-2000:]
            raise ProgramFailed(f"{self.system.name}: a worker has ended:\n{output}")

    def mark(self) -> None:
        """Forget the reports so far."""
        self.read()
        self.seen = Seen()

    def read(self) -> Seen:
        """Read the reports that came since the last call."""
        with self._report.open("rb") as file:
            file.seek(self._offset)
            added = file.read()
        self._offset += len(added)
        *lines, self._partial = (self._partial + added).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        return self.seen

    def _take(self, line: dict[str, Any]) -> None:
        pid = int(line["pid"])
        if line.get("ready"):
            self._ready.add(pid)
            return
        seen = self.seen
        seen.count += line["n"] - self._totals.get(pid, 0)
        self._totals[pid] = line["n"]
        if line["first"] and (not seen.first_us or line["first"] < seen.first_us):
            seen.first_us = line["first"]
        seen.last_us = max(seen.last_us, line["at"])
        seen.waited_us += line["waited"]
        seen.points.append((line["at"], seen.count))

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while len(self._ready) < self.count:
            self.check()
            if time.monotonic() > deadline:
                output = self._log.read_text(errors="replace")[-2000:]
                raise ProgramFailed(f"{self.system.name}: not ready after {READY_S:g} s:\n{output}")
            time.sleep(0.02)
            self.read()

    def submit_many(self, count: int) -> float:
        """Submit with the system's own bulk call; return its seconds."""
        result = run_program(self.system, self.place.variables, "submit-many", str(count))
        return float(result["seconds"])

    def warm_up(self) -> None:
        """Run some jobs, if possible in every process."""
        each = WARM_UP if self._work == "noop" else WARM_UP_SLOW
        for _ in range(WARM_UP_TURNS):
            count = max(WARM_UP_SLOW, min(each * self.count, self.system.pace // 4))
            self.mark()
            self.submit_many(count)
            self.await_count(count, 60.0)
            self.await_settled(10.0)
            if len(self._totals) >= self.count:
                break
        self.mark()

    def await_count(self, count: int, within_s: float) -> bool:
        """Wait for so many handlers to end; return whether they did."""
        deadline = time.monotonic() + within_s
        while self.read().count < count:
            self.check()
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def await_settled(self, within_s: float) -> bool:
        """Wait until no job waits or runs; return whether that happened."""
        deadline = time.monotonic() + within_s
        while not self.place.is_settled():
            self.check()
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True
