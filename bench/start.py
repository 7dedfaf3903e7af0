"""Latency from submit to handler start across two processes: an idle worker and a submitter."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from statistics import quantiles

from bench.app import STAMP
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import ROOT, Workers, WorkersFactory, environment
from laneway import Laneway

INTERVAL_S = 0.05
WARM_UP = 5


async def submit(count: int) -> list[tuple[str, int]]:
    """Submit at intervals; return each job's id and the time just before its submit."""
    sent: list[tuple[str, int]] = []
    async with Laneway() as lw:
        for _ in range(WARM_UP + count):
            await asyncio.sleep(INTERVAL_S * random.uniform(0.5, 1.5))
            before = time.time_ns()
            handle = await lw.submit(STAMP)
            sent.append((str(handle.id), before))
    return sent[WARM_UP:]


def latencies_ms(database: Database, count: int) -> list[float]:
    submitter = subprocess.run(
        [sys.executable, "-m", "bench.start", str(count)],
        cwd=ROOT,
        env=environment(database),
        stdout=subprocess.PIPE,
        check=True,
        timeout=60 + count,
    )
    sent = dict(json.loads(submitter.stdout))
    deadline = time.monotonic() + 30
    while True:
        rows = database.conn.execute(
            "select j.id::text, o.result::text::bigint from laneway.outcome o"
            " join laneway.jobs j using (seq) where j.id = any(%s::uuid[])",
            [list(sent)],
        ).fetchall()
        if len(rows) == count:
            return [(started - sent[job_id]) / 1e6 for job_id, started in rows]
        assert time.monotonic() < deadline, f"{len(rows)} of {count} jobs ran"
        time.sleep(0.1)


def measure(
    server: Server, figures: Figures, scale: Scale, make_workers: WorkersFactory = Workers
) -> None:
    database = server.database("bench_start")
    latencies: list[float] = []
    for _ in range(scale.start_rounds):
        with make_workers(database) as workers:
            workers.warm_up()
            latencies += latencies_ms(database, scale.starts)
    cuts = quantiles(latencies, n=100, method="inclusive")
    log(f"start: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, max {max(latencies):.1f} ms")
    figures.put(start_p50_ms=cuts[49], start_p99_ms=cuts[98])
    server.drop(database)


if __name__ == "__main__":
    json.dump(asyncio.run(submit(int(sys.argv[1]))), sys.stdout)
