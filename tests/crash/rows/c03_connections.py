"""C3: connections are terminated, ten a second: listening, leading, mid-claim, mid-settle."""

from __future__ import annotations

import asyncio
import contextlib
import time

import psycopg

from laneway import Laneway
from tests.crash.load import feed
from tests.crash.row_run import RowRun, cancel_load, percentile, wait_until
from tests.crash.worker_logs import most_lines_per_second

FAULTS, JOBS, PROBES = 100, 2000, 60
EVERY_S = 0.1
PICKUP_S = 1.0
# The name of each connection of a worker, and whether to hit it inside a transaction.
TARGETS = (
    ("laneway claim", True),
    ("laneway listen", False),
    ("laneway settle", True),
    ("laneway worker", False),
    ("laneway heartbeat", False),
    ("laneway claim", False),
    ("laneway settle", False),
    ("laneway client", False),
)


async def inject(run: RowRun) -> None:
    shots = run.count(FAULTS)
    probes = PROBES
    workers = [run.start_worker() for _ in range(3)]
    await run.ready(*workers)
    async with run.client() as client:
        load = asyncio.ensure_future(feed(run, client, run.count(JOBS) - probes, shots, EVERY_S))
        try:
            await _storm(run, shots)
            await load
        finally:
            await cancel_load(load)
        ended = time.monotonic()
        await asyncio.sleep(1)
        slow = await _probe(run, client, probes)
        seconds = time.monotonic() - ended
        await run.drain()
    p99 = percentile(slow, 0.99)
    run.result.must(
        f"pick-up p99 ≤ {PICKUP_S:g} s again within 5 s",
        f"{p99 * 1000:.0f} ms, measured until {seconds:.1f} s after the storm",
        held=len(slow) == probes and p99 <= PICKUP_S,
    )
    gone = [worker for worker in workers if not worker.is_alive]
    run.result.must("worker processes that exited", len(gone), held=not gone)
    most = max(most_lines_per_second(worker.log) for worker in workers)
    run.result.must("complaints per second and cause ≤ 1", most, held=most <= 1)


async def _storm(run: RowRun, shots: int) -> None:
    began = time.monotonic()
    tries = 0
    while run.result.faults < shots and tries < 10 * shots:
        await asyncio.sleep(max(0.0, began + run.result.faults * EVERY_S - time.monotonic()))
        name, is_inside = TARGETS[tries % len(TARGETS)]
        tries += 1
        hit = await _hit_inside(run, name) if is_inside else _hit(run, name)
        if hit:
            run.fault(kind=name, inside=is_inside)


def _hit(run: RowRun, name: str, condition: str = "true") -> bool:
    """Terminate one connection of that name, preferably the leader's."""
    return bool(
        run.ask(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s"
            f" and {condition} order by random() limit 1",
            name,
        )
    )


async def _hit_inside(run: RowRun, name: str) -> bool:
    """Block a transaction at its last write, then terminate its connection."""
    with psycopg.connect(run.dsn, application_name="crash holds") as holder:
        holder.execute("select from laneway.slot_usage for update")
        with contextlib.suppress(Exception):
            waits = "wait_event_type = 'Lock' and state = 'active'"
            await wait_until(lambda: _hit(run, name, waits), 0.3, f"{name} waits", 0.005)
            return True
        return False


async def _probe(run: RowRun, client: Laneway, count: int) -> list[float]:
    """Seconds from submit to start, job by job."""
    asked: dict[str, float] = {}
    for _ in range(count):
        t = time.monotonic()
        for job in await run.submit(client, run.job("quick", ms=1)):
            asked[job] = t
        await asyncio.sleep(0.03)

    def started() -> dict[str, float]:
        events = run.handlers().of("start")
        return {str(e.job): float(e.more["t"]) for e in events if e.job in asked and e.attempt == 1}

    with contextlib.suppress(Exception):
        await wait_until(lambda: len(started()) == len(asked), 5, "all probes start", 0.1)
    return [t - asked[job] for job, t in started().items()]


def check(run: RowRun) -> None:
    inside = sum(event.more["inside"] for event in run.history.of("fault"))
    run.result.lines.append(f"     {inside} of the connections were inside a transaction")
