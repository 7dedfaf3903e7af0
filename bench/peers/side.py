"""The side of the measured system: handlers that count, and reports to the benchmark.

Runs in the environment of each system: it imports only the standard library.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from importlib.metadata import version
from typing import Any, Protocol

TEXT = "a payload of fifty bytes or so"
REPORT_S = 0.02
BATCH = 1000
# About two milliseconds of OpenSSL, the same code in Python and in Node.js.
CPU_ITERATIONS = 4000


def payload(at: int = 0) -> dict[str, Any]:
    """The arguments of a job; `at` is the time of its submit in µs, or 0 if it does not count."""
    return {"at": at, "text": TEXT}


def now_us() -> int:
    return time.time_ns() // 1000


def burn() -> None:
    """Keep a processor busy."""
    hashlib.pbkdf2_hmac("sha256", b"laneway", b"bench", CPU_ITERATIONS)


class Report:
    """Counts handlers and appends a line to the benchmark's file when something has changed."""

    def __init__(self) -> None:
        self._path = os.environ["PEERS_REPORT"]
        kind, _, amount = os.environ.get("PEERS_WORK", "noop").partition(":")
        self.sleep_s = float(amount) / 1000 if kind == "sleep" else 0.0
        self.is_cpu = kind == "cpu"
        self._forget()
        os.register_at_fork(after_in_child=self._continue_in_child)
        self._start_thread()

    def _forget(self) -> None:
        self._count = 0
        self._reported = 0
        self._first = 0
        self._waited: list[int] = []

    def _continue_in_child(self) -> None:
        self._forget()
        self._start_thread()

    def _start_thread(self) -> None:
        threading.Thread(target=self._keep_reporting, daemon=True).start()

    def write(self, **line: Any) -> None:
        text = json.dumps({"pid": os.getpid(), **line}) + "\n"
        with open(self._path, "ab", buffering=0) as file:
            file.write(text.encode())

    def ready(self) -> None:
        """The worker is able to take jobs."""
        self.write(ready=True)

    def began(self, at: int) -> None:
        """A handler starts, of a job that was submitted at this time."""
        if not self._first:
            self._first = now_us()
        if at:
            self._waited.append(now_us() - at)

    def ended(self) -> None:
        self._count += 1

    async def handle(self, at: int) -> None:
        """The handler of systems that run coroutines."""
        self.began(at)
        if self.sleep_s:
            await asyncio.sleep(self.sleep_s)
        elif self.is_cpu:
            burn()
        self.ended()

    def handle_in_thread(self, at: int) -> None:
        """The handler of systems that run plain functions."""
        self.began(at)
        if self.sleep_s:
            time.sleep(self.sleep_s)
        elif self.is_cpu:
            burn()
        self.ended()

    def _keep_reporting(self) -> None:
        while True:
            time.sleep(REPORT_S)
            count = self._count
            if count != self._reported:
                first, self._first = self._first, 0
                waited, self._waited = self._waited, []
                self.write(n=count, first=first, at=now_us(), waited=waited)
                self._reported = count


def end_with_benchmark() -> None:
    """End this process and its children when the benchmark, at the other end of stdin, ends."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


class Program(Protocol):
    """The commands that each system provides for the benchmark."""

    packages: tuple[str, ...]

    async def prepare(self) -> None:
        """Create the tables."""

    async def submitter(self) -> Submitter: ...

    async def work(self) -> None:
        """Run jobs until the process is killed."""


class Submitter(Protocol):
    """An open connection that submits."""

    async def submit_many(self, payloads: list[dict[str, Any]]) -> None: ...

    async def submit(self, payload: dict[str, Any]) -> None: ...


async def _submit_many(submitter: Submitter, count: int) -> dict[str, Any]:
    batches = [[payload() for _ in range(min(BATCH, count - n))] for n in range(0, count, BATCH)]
    began = time.perf_counter()
    for batch in batches:
        await submitter.submit_many(batch)
    return {"seconds": time.perf_counter() - began}


async def _submit(submitter: Submitter, count: int, interval_s: float) -> dict[str, Any]:
    took: list[float] = []
    for _ in range(count):
        if interval_s:
            await asyncio.sleep(interval_s * random.uniform(0.5, 1.5))
        began = time.perf_counter()
        await submitter.submit(payload(now_us()))
        took.append(time.perf_counter() - began)
    return {"seconds": sum(took), "took": took}


def main(program: Program, run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
    """Do what the arguments ask for and print the result as a line of JSON."""
    command, *rest = sys.argv[1:]

    async def one() -> None:
        result: dict[str, Any] = {}
        if command == "prepare":
            await program.prepare()
        elif command == "submit-many":
            result = await _submit_many(await program.submitter(), int(rest[0]))
        elif command == "submit":
            result = await _submit(await program.submitter(), int(rest[0]), float(rest[1]))
        else:
            raise SystemExit(f"{command}: choose versions, prepare, submit-many, submit or work")
        print(json.dumps(result), flush=True)
        # A client's own shutdown is not measured; some take long or never end.
        os._exit(0)

    if command == "versions":
        versions = {name: version(name) for name in program.packages}
        print(json.dumps({**versions, "Python": platform.python_version()}))
    elif command == "work":
        end_with_benchmark()
        run(program.work())
    else:
        run(one())
