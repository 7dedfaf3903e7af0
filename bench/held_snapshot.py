"""Latency from submit to handler start at a steady rate, while another transaction stays open.

That transaction holds a snapshot and has written a row.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from statistics import quantiles

import psycopg

from bench.app import STAMP
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import ROOT, Workers, environment
from laneway import Laneway

WARM_UP = 50
# The start and the end are one tenth of the time each.
PART = 10


async def submit(rate: float, seconds: float) -> list[tuple[str, int]]:
    """Submit at random times; return each job's id and the time just before its submit."""
    sent: list[tuple[str, int]] = []

    async def one(lw: Laneway) -> None:
        before = time.time_ns()
        handle = await lw.submit(STAMP)
        sent.append((str(handle.id), before))

    async with Laneway() as lw, asyncio.TaskGroup() as under_way:
        for _ in range(WARM_UP):
            await one(lw)
        sent.clear()
        at = time.monotonic()
        end = at + seconds
        while (at := at + random.expovariate(rate)) < end:
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            under_way.create_task(one(lw))
    return sent


def latencies_ms(database: Database, rate: float, seconds: float) -> list[float]:
    """Latencies in the order of submits."""
    submitter = subprocess.run(
        [sys.executable, "-m", "bench.held_snapshot", str(rate), str(seconds)],
        cwd=ROOT,
        env=environment(database),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120 + 2 * seconds,
    )
    sent = json.loads(submitter.stdout)
    deadline = time.monotonic() + 60
    while database.value("select count(*) from laneway.ready") or database.value(
        "select count(*) from laneway.lease"
    ):
        assert time.monotonic() < deadline, "jobs are left"
        time.sleep(0.1)
    started: dict[str, int] = dict(
        database.conn.execute(
            "select j.id::text, o.result::text::bigint from laneway.outcome o"
            " join laneway.jobs j using (seq) where j.job_type = %s",
            [STAMP],
        ).fetchall()
    )
    return [(started[job_id] - before) / 1e6 for job_id, before in sorted(sent, key=lambda s: s[1])]


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_held")
    with Workers(database) as workers:
        workers.warm_up()
        with psycopg.connect(database.dsn) as holder:
            holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            holder.execute("create table written (number integer)")
            latencies = latencies_ms(database, scale.hold_rate, scale.hold_s)
    part = len(latencies) // PART
    parts = [
        quantiles(latencies[n * part : (n + 1) * part], n=100, method="inclusive")
        for n in range(PART)
    ]
    for n, cuts in enumerate(parts, 1):
        log(f"held snapshot, part {n} of {PART}: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")
    start, end = parts[0], parts[-1]
    figures.put(
        held_snapshot_p50_ms_start=start[49],
        held_snapshot_p99_ms_start=start[98],
        held_snapshot_p50_ms_end=end[49],
        held_snapshot_p99_ms_end=end[98],
        p99_end_vs_start=end[98] / start[98],
    )
    server.drop(database)


if __name__ == "__main__":
    json.dump(asyncio.run(submit(float(sys.argv[1]), float(sys.argv[2]))), sys.stdout)
