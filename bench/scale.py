"""Counts and durations of a run, and its progress lines."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True)
class Scale:
    """Counts and durations of a run; the targets apply to the defaults."""

    runs: int = 7
    drain: int = 60_000
    # Eight processes work for seconds, so that their start and end count little.
    drain_many: int = 150_000
    submit: int = 20_000
    starts: int = 200
    start_rounds: int = 2
    backlog_large: int = 1_000_000
    backlog_small: int = 10_000
    backlog_drain: int = 20_000
    blocked: int = 1_000_000
    # Each run first puts the million blocked jobs aside.
    blocked_runs: int = 3
    snapshot: int = 200_000
    hold_s: float = 1200.0
    hold_rate: float = 200.0
    idle_before_s: float = 12.0
    idle_s: float = 40.0
    memory_jobs: int = 10_000
    post_s: float = 4.0
    status_waiting: int = 1_000_000
    status_ended: int = 5_000_000
    status_reads: int = 15
    reads_ended: int = 2_000_000
    reads_waiting: int = 100_000
    stream_changes: int = 200
    stream_readers: int = 1000
    # Generated requests per route; None: as many as `make fuzz` sends.
    fuzz_each: int | None = None
    responsive_runs: int = 3
    responsive_s: float = 8.0
    flow: int = 10_000
    flow_runs: int = 5
    chain: int = 10_000
    chain_runs: int = 3
    parked: int = 100_000
    events: int = 10_000


QUICK = Scale(
    runs=2,
    drain=5_000,
    drain_many=5_000,
    submit=5_000,
    starts=30,
    start_rounds=1,
    backlog_large=50_000,
    backlog_small=5_000,
    backlog_drain=5_000,
    blocked=40_000,
    blocked_runs=2,
    snapshot=20_000,
    hold_s=10.0,
    hold_rate=300.0,
    idle_before_s=2.0,
    idle_s=6.0,
    memory_jobs=2_000,
    post_s=1.0,
    status_waiting=20_000,
    status_ended=20_000,
    status_reads=2,
    reads_ended=20_000,
    reads_waiting=2_000,
    stream_changes=10,
    stream_readers=120,
    fuzz_each=2,
    responsive_runs=1,
    responsive_s=1.5,
    flow=1_000,
    flow_runs=1,
    chain=100,
    chain_runs=1,
    parked=1_000,
    events=1_000,
)


def log(text: str) -> None:
    """Print progress to standard error; figures go to standard output."""
    print(f"[{time.monotonic() - _BEGAN:5.0f} s] {text}", file=sys.stderr, flush=True)
