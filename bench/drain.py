"""Throughput of no-op jobs: COPY, the bare loop and worker processes, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

from bench import load, raw, timing
from bench.figures import Figures, alternate
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers, WorkersFactory

DRAIN_S = 180.0


def copy(database: Database, count: int) -> float:
    """Rows per second of COPY in one transaction."""
    database.empty()
    rows = load.render(database, count)
    database.vacuum_and_checkpoint()
    began = time.perf_counter()
    load.store(database.conn, rows)
    return count / (time.perf_counter() - began)


def workers(
    database: Database,
    count: int,
    processes: int = 1,
    max_slots: int | None = None,
    make_workers: WorkersFactory = Workers,
) -> float:
    """Jobs per second of warm, idle worker processes that find all jobs at once."""
    database.empty()
    database.tune_default(max_slots=max_slots)
    try:
        with make_workers(database, processes) as running:
            running.warm_up()
            database.pause_claims()
            first, last = load.fill(database, count)
            database.vacuum_and_checkpoint()
            database.resume_claims()
            running.await_drained(last, DRAIN_S)
    finally:
        database.tune_default(max_slots=None)
    return timing.rate(database, first - 1, count)


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_drain")
    count = scale.drain
    tried = {
        batch: max(raw.drain(database, count, batch) for _ in range(2)) for batch in raw.BATCHES
    }
    best = max(tried, key=lambda batch: tried[batch])
    log("raw by batch: " + ", ".join(f"{b}: {r:,.0f}/s" for b, r in tried.items()))
    kinds: dict[str, Callable[[], float]] = {
        "copy": lambda: copy(database, count),
        "raw": lambda: raw.drain(database, count, best),
        "1 process": lambda: workers(database, count),
        "defaults": lambda: workers(
            database, count, make_workers=partial(Workers, concurrency=None)
        ),
        "2 processes": lambda: workers(database, scale.drain_many, 2),
        "8 processes": lambda: workers(database, scale.drain_many, 8),
        "1,000 slots": lambda: workers(database, count, max_slots=1000),
    }
    rates = alternate("drain", kinds, scale.runs)
    figures.ratio("drain_1p_vs_raw", rates["1 process"], rates["raw"])
    figures.ratio("raw_vs_copy", rates["raw"], rates["copy"])
    figures.ratio("drain_default_vs_tuned", rates["defaults"], rates["1 process"])
    figures.ratio("drain_2p_vs_1p", rates["2 processes"], rates["1 process"])
    figures.ratio("drain_8p_vs_2p", rates["8 processes"], rates["2 processes"])
    figures.ratio("bounded_vs_unbounded", rates["1,000 slots"], rates["1 process"])
    figures.put(
        drain_1p=median(rates["1 process"]),
        drain_2p=median(rates["2 processes"]),
        raw=median(rates["raw"]),
    )
    server.drop(database)
