"""Replays every hostile request against a real server, and measures what each costs others.

    python -m tests.abuse.run [words]      only cases whose name holds one of the words

The last line is JSON: cases, longest_block_ms (what a second client waited for /healthz), growth of
the server's memory in MB, leaks (an answer with somebody else's words, or a descriptor that stays)
and escapes (an answer that should have been refused, or a server that stopped).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

import psutil

from tests.abuse.case import Case, Reply, Target, exchange, request_bytes
from tests.abuse.target import served

# Each has CASES; a door may be absent.
MODULES = ("tests.abuse.http", "tests.abuse.tenants", "tests.abuse.remote")
MOST_BLOCK_MS = 250.0
MOST_GROWTH_MB = 50.0
# A busy machine delays the second client too: a case counts by the best of so many.
TRIES = 3


@dataclass
class Findings:
    """What was found, case by case."""

    cases: int = 0
    longest_block_ms: float = 0.0
    rss_growth_mb: float = 0.0
    leaks: list[str] = field(default_factory=list)
    escapes: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        is_calm = self.longest_block_ms <= MOST_BLOCK_MS and self.rss_growth_mb <= MOST_GROWTH_MB
        return is_calm and not self.leaks and not self.escapes


class Probe:
    """The second client, in a process of its own."""

    def __init__(self, target: Target) -> None:
        command = [sys.executable, "-m", "tests.abuse.probe", target.host, str(target.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._seen: list[tuple[float, float]] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            began, took = line.split()
            self._seen.append((float(began), float(took)))

    def longest_ms(self, since: float) -> float:
        """The longest answer of those that were not there yet at that time."""
        # One that is under way now is part of the case too.
        asked = len(self._seen)
        patience = time.monotonic() + 60
        while len(self._seen) < asked + 2 and time.monotonic() < patience:
            time.sleep(0.005)
        return max((took for at, took in self._seen if at + took >= since), default=0.0) * 1000

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def all_cases() -> list[Case]:
    found: list[Case] = []
    for name in MODULES:
        if find_spec(name) is not None:
            found += import_module(name).CASES
    names = [case.name for case in found]
    assert len(names) == len(set(names)), "two cases have one name"
    return found


async def play(case: Case, target: Target) -> Reply:
    try:
        async with asyncio.timeout(case.budget_s):
            return await case.send(target)
    except TimeoutError:
        return Reply("over its budget of time")
    except OSError as error:
        return Reply(f"no connection: {error}")


def examine(case: Case, target: Target, probe: Probe, findings: Findings) -> None:
    blocks: list[float] = []
    process = psutil.Process(target.pid)
    before = process.memory_info().rss
    took_s = 0.0
    for _ in range(TRIES):
        began = time.monotonic()
        reply = asyncio.run(play(case, target))
        took_s = time.monotonic() - began
        blocks.append(probe.longest_ms(began))
        if reply.status not in case.expected:
            findings.escapes.append(f"{case.name}: {reply.status} {reply.text[:200]}")
            break
        found = [word for word in target.secrets if word in reply.text]
        if found:
            findings.leaks.append(f"{case.name}: {found}")
        if blocks[-1] <= MOST_BLOCK_MS / 2:
            break
    block = min(blocks)
    grown = (process.memory_info().rss - before) / 2**20
    findings.cases += 1
    findings.longest_block_ms = max(findings.longest_block_ms, block)
    if block > MOST_BLOCK_MS:
        findings.slow.append(f"{case.name}: {block:.0f} ms")
    print(
        f"{block:7.0f} ms {grown:+7.1f} MB {took_s:6.2f} s  {reply.status}  {case.name}", flush=True
    )


def settle(target: Target) -> psutil.Process:
    """The process, once what was under way has ended."""
    ask = request_bytes(target, "GET", "/me", "viewer")
    for _ in range(200):
        asyncio.run(exchange(target, ask))
    time.sleep(1)
    return psutil.Process(target.pid)


def run(words: list[str]) -> Findings:
    findings = Findings()
    cases = [one for one in all_cases() if not words or any(word in one.name for word in words)]
    with ExitStack() as stack:
        target = stack.enter_context(served())
        for path in ("/jobs", "/me", "/admin/workers/status", "/openapi.json", "/nothing"):
            asyncio.run(exchange(target, request_bytes(target, "GET", path, "admin")))
        probe = Probe(target)
        stack.callback(probe.stop)
        process = settle(target)
        rss, files = process.memory_info().rss, process.num_fds()
        for case in cases:
            examine(case, target, probe, findings)
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                findings.escapes.append(f"{case.name}: the server is gone")
                return findings
        settle(target)
        findings.rss_growth_mb = round((process.memory_info().rss - rss) / 2**20, 1)
        # The pool of connections to the database grows to its size.
        if process.num_fds() > files + 20:
            findings.leaks.append(f"descriptors: {files} became {process.num_fds()}")
    return findings


def main() -> int:
    findings = run(sys.argv[1:])
    for kind in ("escapes", "leaks", "slow"):
        for line in getattr(findings, kind):
            print(f"{kind}: {line}")
    told = {
        "cases": findings.cases,
        "longest_block_ms": round(findings.longest_block_ms, 1),
        "rss_growth_mb": findings.rss_growth_mb,
        "leaks": len(findings.leaks),
        "escapes": len(findings.escapes),
    }
    print(json.dumps(told))
    return 0 if findings.is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
