"""Latency from the sending of an event to the start of the handler that waits for it.

A sender in another process sends 1,000 events a second, each to one waiting job.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from statistics import quantiles

from bench.figures import Figures
from bench.flows.app import EVENT, LISTENING
from bench.flows.parked import APP, park
from bench.load import all_of
from bench.scale import Scale, log
from bench.server import Server
from bench.workers import ROOT, Workers, environment
from laneway import Laneway

RATE = 1000.0
SENDERS = 8


async def send(keys: list[str]) -> float:
    """Send an event for each key at a steady rate; return the events per second."""
    async with Laneway() as lw:
        await asyncio.gather(*(lw.send_event("warm-up", key=str(n)) for n in range(SENDERS)))
        began = time.monotonic()

        async def send_some(sender: int) -> None:
            for n in range(sender, len(keys), SENDERS):
                await asyncio.sleep(max(0.0, began + n / RATE - time.monotonic()))
                await lw.send_event(EVENT, key=keys[n], payload={"at": time.time_ns()})

        await asyncio.gather(*(send_some(sender) for sender in range(SENDERS)))
        return len(keys) / (time.monotonic() - began)


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_events")
    with Workers(database, app=APP) as workers:
        workers.warm_up()
        park(database, workers, scale.events, all_of(LISTENING))
        database.vacuum_and_checkpoint()
        ids = database.conn.execute(
            "select j.id::text from laneway.waiting w join laneway.jobs j using (seq)"
        ).fetchall()
        sender = subprocess.run(
            [sys.executable, "-m", "bench.flows.events"],
            cwd=ROOT,
            env=environment(database),
            input=json.dumps([row[0] for row in ids]).encode(),
            stdout=subprocess.PIPE,
            check=True,
            timeout=120 + scale.events / RATE,
        )
        workers.await_flows_ended(60.0)
    waited = database.conn.execute(
        "select o.result::text::bigint / 1e6 from laneway.outcome o where o.job_type = %s",
        [LISTENING],
    ).fetchall()
    assert len(waited) == scale.events, f"{len(waited)} of {scale.events} jobs got their event"
    cuts = quantiles([float(row[0]) for row in waited], n=100, method="inclusive")
    per_s = float(sender.stdout)
    log(f"events: {per_s:,.0f}/s, p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")
    figures.put(events_per_s=per_s, event_p50_ms=cuts[49], event_p99_ms=cuts[98])
    server.drop(database)


if __name__ == "__main__":
    print(asyncio.run(send(json.load(sys.stdin))))
