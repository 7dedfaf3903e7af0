"""The cost of 100,000 handlers that sleep or wait for an event, for a worker that is idle."""

from __future__ import annotations

import time

import psutil

from bench import idle, load
from bench.figures import Figures
from bench.flows.app import ASLEEP, LISTENING
from bench.load import Kind
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers

APP = "bench.flows.app:lw"
PARK_S = 900.0


def half_and_half() -> Kind:
    """Jobs that sleep and jobs that wait for an event, in turns."""
    return lambda n: (ASLEEP if n % 2 else LISTENING, None)


def park(database: Database, workers: Workers, count: int, kind: Kind) -> None:
    """Run jobs until all of them wait."""
    load.fill(database, count, kind, "{}")
    database.resume_claims()
    workers.await_waiting(count, PARK_S)
    workers.await_idle(60.0)


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database(idle.NAME)
    with Workers(database, app=APP) as workers:
        workers.warm_up()
        root = psutil.Process(workers.pids[0])
        before, size = root.memory_info().rss, _bytes(database)
        began = time.monotonic()
        park(database, workers, scale.parked, half_and_half())
        log(f"parked {scale.parked:,} jobs in {time.monotonic() - began:.0f} s")
        added = root.memory_info().rss - before
        stored = _bytes(database) - size
    database.vacuum_and_checkpoint()
    idle.log_statements(database)
    with Workers(database, app=APP):
        statements = idle.count_statements(server, database, scale)
    log(f"parked: {added / 1e6:.1f} MB more in the worker, {stored / 1e6:.0f} MB in the database")
    figures.put(
        idle_statements_per_s=statements,
        waiting_100k_mb=added / 1e6,
        waiting_100k_stored_mb=stored / 1e6,
    )
    server.drop(database)


def _bytes(database: Database) -> int:
    return int(database.value("select pg_database_size(current_database())"))
