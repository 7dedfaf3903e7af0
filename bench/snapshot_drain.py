"""A long drain while another transaction holds an old snapshot, so that dead rows stay."""

from __future__ import annotations

from statistics import median

import psycopg

from bench import load, timing
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers

DRAIN_S = 300.0


def drain(database: Database, count: int) -> tuple[float, float]:
    """Jobs per second in the first and in the last quarter."""
    database.empty()
    with Workers(database) as workers:
        workers.warm_up()
        database.pause_claims()
        first, last = load.fill(database, count)
        database.vacuum_and_checkpoint()
        with psycopg.connect(database.dsn) as holder:
            holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            holder.execute("select count(*) from laneway.control")
            database.resume_claims()
            workers.await_drained(last, DRAIN_S)
    return timing.quarter_rates(database, first - 1)


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_snapshot")
    firsts: list[float] = []
    lasts: list[float] = []
    for turn in range(scale.runs):
        first, last = drain(database, scale.snapshot)
        firsts.append(first)
        lasts.append(last)
        log(f"held snapshot {turn + 1}: first quarter {first:,.0f}/s, last {last:,.0f}/s")
    figures.put(held_snapshot_last_vs_first=median(lasts) / median(firsts))
    server.drop(database)
