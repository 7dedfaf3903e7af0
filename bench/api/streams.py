"""Streams: latency of an event from another replica, and the cost of a thousand readers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from uuid import UUID

from bench import start
from bench.api.replica import make_token, serving
from bench.figures import Figures
from bench.partner import Partner
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers
from laneway import Laneway
from laneway.config.settings import Settings
from laneway.control import jobs as control
from laneway.http import AsyncClient
from laneway.store.database import Database as Pool

# These jobs wait; the benchmark changes their priority.
PARKED = "bench_parked"
LATER_S = 86400.0
PER_TOKEN = 20
# Readers of the thousand that never read.
NEVER_READ = 100
CHANGES_PER_S = 20


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_streams")
    with serving(database) as one, serving(database) as other:
        token = make_token(database)
        seen_ms = asyncio.run(_seen_elsewhere(one.url, other.url, token, scale.stream_changes))
    log(f"streams: another replica sees a change after {median(seen_ms):.1f} ms")
    figures.put(cross_replica_event_p50_ms=median(seen_ms))
    _measure_readers(database, figures, scale)
    server.drop(database)


async def _seen_elsewhere(here: str, there: str, token: str, count: int) -> list[float]:
    """Milliseconds from a change through one replica to its event from the other."""
    took: list[float] = []
    async with AsyncClient(here, token) as asking, AsyncClient(there, token) as watching:
        job = await asking.submit(PARKED, delay=LATER_S)
        stream = watching.watch(job.id)
        assert (await anext(stream)).name == "job.state"
        for n in range(count):
            await asyncio.sleep(0.02)
            began = time.perf_counter()
            asked = asyncio.ensure_future(asking.reprioritize_job(job.id, 1 + n % 2))
            await anext(stream)
            took.append(1000 * (time.perf_counter() - began))
            await asked
    return took


def _measure_readers(database: Database, figures: Figures, scale: Scale) -> None:
    readers = scale.stream_readers
    tokens = [make_token(database, f"reader{n}") for n in range(-(-readers // PER_TOKEN))]
    parked = asyncio.run(_park(database, readers - NEVER_READ))
    wanted = [
        {"path": "/events?topic=jobs", "token": tokens[n // PER_TOKEN], "reads": False}
        for n in range(NEVER_READ)
    ]
    wanted += [
        {"path": f"/jobs/{job}/stream", "token": tokens[n // PER_TOKEN], "reads": True}
        for n, job in enumerate(parked, NEVER_READ)
    ]
    alone: list[float] = []
    beside: list[float] = []
    with serving(database) as replica, Workers(database) as workers:
        workers.warm_up()
        before_mb = replica.rss_mb
        for _ in range(scale.start_rounds):
            alone += start.latencies_ms(database, scale.starts)
            with _open_streams(replica.port, wanted) as received, _changing(database, parked):
                beside += start.latencies_ms(database, scale.starts)
                rss_mb = replica.rss_mb
            assert received["reading"] == len(parked), received
    log(
        f"streams: {readers} readers: {before_mb:.0f} → {rss_mb:.0f} MB,"
        f" {received['events']} events; start p50 {median(alone):.2f} → {median(beside):.2f} ms"
    )
    figures.put(sse_1000_rss_mb=rss_mb, sse_1000_start_p50_vs_none=median(beside) / median(alone))


async def _park(database: Database, count: int) -> list[str]:
    async with Laneway(database.dsn) as lw:
        made = await lw.submit_many([(PARKED, {}, {"delay": LATER_S})] * count)
        return [str(job.id) for job in made]


@contextmanager
def _open_streams(port: int, wanted: list[dict[str, Any]]) -> Iterator[dict[str, int]]:
    """Keep streams open during the block; fill in what they received at its end."""
    received: dict[str, int] = {}
    with Partner("bench.api.stream_readers", port) as readers:
        readers.send(json.dumps(wanted))
        readers.expect("open")
        yield received
        received.update(readers.result(30))


@contextmanager
def _changing(database: Database, parked: list[str]) -> Iterator[None]:
    """Change one job at a time, so that its reader receives events."""
    is_over = threading.Event()

    async def change() -> None:
        pool = Pool(database.dsn, Settings.load(database_url=database.dsn))
        n = 0
        try:
            while not is_over.is_set():
                job, priority = UUID(parked[n % len(parked)]), 1 + n // len(parked) % 2
                await control.reprioritize(pool, job, priority, by="bench")
                n += 1
                await asyncio.sleep(1 / CHANGES_PER_S)
        finally:
            await pool.close()

    thread = threading.Thread(target=lambda: asyncio.run(change()))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
