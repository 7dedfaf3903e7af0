"""The memory of one worker with many running jobs, including its heartbeat process."""

from __future__ import annotations

import contextlib
import time

import psutil

from bench import load
from bench.app import HOLD
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Server
from bench.workers import Workers

LEASE_S = 6
WATCH_S = 8.0


def _tree_rss(pid: int) -> int:
    """Resident memory of a process and its children; shared pages count for each of them."""
    root = psutil.Process(pid)
    total = 0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_memory")
    # A short lease: every job is renewed several times during the measurement.
    database.tune_default(lease_seconds=LEASE_S)
    with Workers(database, concurrency=scale.memory_jobs + 100) as workers:
        idle = _tree_rss(workers.pids[0])
        load.fill(database, scale.memory_jobs, load.all_of(HOLD), "{}")
        database.resume_claims()
        workers.await_running(scale.memory_jobs, 60.0)
        most = 0
        until = time.monotonic() + WATCH_S
        while time.monotonic() < until:
            most = max(most, _tree_rss(workers.pids[0]))
            time.sleep(0.1)
        lost = database.value("select count(*) from laneway.attempts")
        assert lost == 0, f"{lost} jobs were lost meanwhile"
    log(
        f"memory: {idle / 1e6:.0f} MB idle, at most {most / 1e6:.0f} MB"
        f" with {scale.memory_jobs:,} jobs"
    )
    figures.put(rss_10k_async_mb=most / 1e6)
    server.drop(database)
