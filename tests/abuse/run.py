"""Replay every hostile request against a real server, and measure what each costs other clients.

    python -m tests.abuse.run [words]      only cases whose name holds one of the words

The last line is JSON with these figures:

- longest_block_ms: how long the server let a second client wait for /healthz, see
  `resource_usage.blocked_s`;
- rss_growth_mb: growth of the server's memory;
- leaks: responses with another tenant's words, or descriptors that stay open;
- escapes: responses that should have been refusals, or a server that stopped;
- over_budget: cases over their budget of processor time or memory.
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
from typing import NamedTuple

import psutil

from tests.abuse.case import Case, Reply, Target, exchange, request_bytes
from tests.abuse.resource_usage import Memory, Watch
from tests.abuse.target import served

# Each has CASES; a module may be absent.
MODULES = (
    "tests.abuse.http",
    "tests.abuse.reads",
    "tests.abuse.tls_streams_roles",
    "tests.abuse.grpc_calls",
)
MAX_BLOCK_MS = 250.0
MAX_GROWTH_MB = 50.0
# A case over a limit is tried this often in all; one whole try counts.
TRIES = 3


@dataclass
class Findings:
    """The findings of all cases."""

    cases: int = 0
    longest_block_ms: float = 0.0
    rss_growth_mb: float = 0.0
    leaks: list[str] = field(default_factory=list)
    escapes: list[str] = field(default_factory=list)
    over_budget: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        is_within_bounds = (
            self.longest_block_ms <= MAX_BLOCK_MS and self.rss_growth_mb <= MAX_GROWTH_MB
        )
        return is_within_bounds and not (self.leaks or self.escapes or self.over_budget)


class Cost(NamedTuple):
    """The cost of one try of a case."""

    blocked_ms: float
    cpu_s: float
    peak_mb: float
    kept_mb: float


class ProbeResponse(NamedTuple):
    """One response to the second client."""

    began: float
    took_s: float
    blocked_s: float


class Probe:
    """The second client, in a separate process."""

    def __init__(self, target: Target) -> None:
        arguments = [target.host, str(target.port), str(target.pid)]
        command = [sys.executable, "-m", "tests.abuse.probe", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._seen: list[ProbeResponse] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._seen.append(ProbeResponse(*map(float, line.split())))

    def longest_ms(self, since: float) -> float:
        """The longest block of the responses that arrived after `since`."""
        # A request in progress is part of the case too.
        asked = len(self._seen)
        deadline = time.monotonic() + 60
        while len(self._seen) < asked + 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        seen = (one.blocked_s for one in self._seen if one.began + one.took_s >= since)
        return max(seen, default=0.0) * 1000

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


async def send(case: Case, target: Target) -> Reply:
    try:
        async with asyncio.timeout(case.patience_s):
            return await case.send(target)
    except TimeoutError:
        return Reply("no answer in time")
    except OSError as error:
        return Reply(f"no connection: {error}")


def examine(case: Case, target: Target, probe: Probe, findings: Findings) -> None:
    tries: list[Cost] = []
    for _ in range(TRIES):
        began, memory, watch = time.monotonic(), Memory(target.pid), Watch(target.pid)
        reply = asyncio.run(send(case, target))
        _, cpu_s, _ = watch.read()
        blocked = probe.longest_ms(began)
        cost = Cost(blocked, cpu_s, memory.peak_mb, memory.kept_mb)
        tries.append(cost)
        if reply.status not in case.expected:
            findings.escapes.append(f"{case.name}: {reply.status} {reply.text[:200]}")
            break
        found = [word for word in target.secrets if word in reply.text]
        if found:
            findings.leaks.append(f"{case.name}: {found}")
        if cost.blocked_ms <= MAX_BLOCK_MS / 2 and not _excess(case, cost):
            break
    cost = typical(tries)
    findings.cases += 1
    findings.longest_block_ms = max(findings.longest_block_ms, cost.blocked_ms)
    findings.over_budget += [f"{case.name}: {one}" for one in _excess(case, cost)]
    print(
        f"{cost.blocked_ms:7.0f} ms {cost.cpu_s:6.2f} s {cost.peak_mb:+7.1f} MB peak"
        f" {cost.kept_mb:+7.1f} MB kept  {reply.status}  {case.name}",
        flush=True,
    )


def typical(tries: list[Cost]) -> Cost:
    """The whole try with the median block, and the memory of the first try.

    The best of each column would hide occasional blocks. Memory that is allocated once is not
    allocated again.
    """
    by_block = sorted(tries, key=lambda one: (one.blocked_ms, one.cpu_s))
    first = tries[0]
    median = by_block[len(tries) // 2]
    return median._replace(peak_mb=first.peak_mb, kept_mb=first.kept_mb)


def _excess(case: Case, cost: Cost) -> list[str]:
    """List the limits that a case exceeded."""
    found = []
    if cost.blocked_ms > MAX_BLOCK_MS:
        found.append(f"blocked others for {cost.blocked_ms:.0f} ms")
    if cost.cpu_s > case.cpu_s:
        found.append(f"took {cost.cpu_s:.2f} s of processor time, budget {case.cpu_s} s")
    if cost.peak_mb > case.memory_mb:
        found.append(f"took {cost.peak_mb:.0f} MB, budget {case.memory_mb:.0f} MB")
    return found


def settle(target: Target) -> psutil.Process:
    """Return the process after earlier requests have ended."""
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
        # The first message imports MCP; requests do not cause that growth.
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        accepts = {"Accept": "application/json, text/event-stream"}
        first = request_bytes(target, "POST", "/mcp", "viewer", accepts, ping)
        asyncio.run(exchange(target, first))
        probe = Probe(target)
        stack.callback(probe.stop)
        process = settle(target)
        rss, files = process.memory_info().rss, process.num_fds()
        for case in cases:
            examine(case, target, probe, findings)
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                findings.escapes.append(f"{case.name}: the server has ended")
                return findings
        settle(target)
        findings.rss_growth_mb = round((process.memory_info().rss - rss) / 2**20, 1)
        # The connection pool of the database may grow to its size.
        if process.num_fds() > files + 20:
            findings.leaks.append(f"descriptors: {files} became {process.num_fds()}")
    return findings


def main() -> int:
    findings = run(sys.argv[1:])
    for kind in ("escapes", "leaks", "over_budget"):
        for line in getattr(findings, kind):
            print(f"{kind}: {line}")
    figures = {
        "cases": findings.cases,
        "longest_block_ms": round(findings.longest_block_ms, 1),
        "rss_growth_mb": findings.rss_growth_mb,
        "leaks": len(findings.leaks),
        "escapes": len(findings.escapes),
        "over_budget": len(findings.over_budget),
    }
    print(json.dumps(figures))
    return 0 if findings.is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
