"""The figures of remote workers, next to those of workers with a database."""

from __future__ import annotations

import time
from functools import partial
from statistics import median

from bench import backlog, drain, idle, load, start
from bench.figures import Figures, alternate
from bench.rpc.remote_workers import RemoteWorkers
from bench.scale import Scale, log
from bench.server import Database, Server

FEW, MANY = 4, 20
# Concurrency of each stream.
EACH = 250
IDLE = 100


def drain_through_streams(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_rpc_drain")
    several = partial(RemoteWorkers, concurrency=EACH)
    kinds = {
        "in process": partial(drain.workers, database, scale.drain),
        "1 stream": partial(drain.workers, database, scale.drain, make_workers=RemoteWorkers),
        f"{FEW} streams": partial(drain.workers, database, scale.drain, FEW, make_workers=several),
        f"{MANY} streams": partial(
            drain.workers, database, scale.drain, MANY, make_workers=several
        ),
    }
    rates = alternate("drain", kinds, scale.runs)
    figures.ratio("stream_vs_inprocess", rates["1 stream"], rates["in process"])
    figures.ratio("workers20_vs_4", rates[f"{MANY} streams"], rates[f"{FEW} streams"])
    figures.put(stream_1=median(rates["1 stream"]), in_process=median(rates["in process"]))
    server.drop(database)


def count_transactions(server: Server, figures: Figures, scale: Scale) -> None:
    """Count transactions per job, from PostgreSQL's statistics."""
    database = server.database("bench_rpc_transactions")
    with RemoteWorkers(database) as workers:
        workers.warm_up()
        database.pause_claims()
        _, last = load.fill(database, scale.drain)
    # A backend reports all its transactions when it ends.
    database.vacuum_and_checkpoint()
    before, rolled_back = _transactions(database)
    with RemoteWorkers(database):
        database.resume_claims()
        queries = _poll_until_ended(database, last)
    after, rolled_back_after = _transactions(database)
    own = queries + 2 + 1
    count = after - before - own
    log(f"transactions: {count:,} for {scale.drain:,} jobs, {rolled_back_after - rolled_back} back")
    figures.put(tx_per_job=count / scale.drain, rollbacks=rolled_back_after - rolled_back)
    server.drop(database)


def _poll_until_ended(database: Database, last: int) -> int:
    """Poll until the last job has ended; return the number of queries."""
    deadline = time.monotonic() + drain.DRAIN_S
    queries = 0
    while time.monotonic() < deadline:
        queries += 1
        if database.value(
            "select not exists (select from laneway.ready)"
            " and not exists (select from laneway.lease)"
            " and exists (select from laneway.outcome where seq = %s)",
            last,
        ):
            return queries
        time.sleep(0.25)
    raise AssertionError("the jobs did not end")


def _transactions(database: Database) -> tuple[int, int]:
    time.sleep(1.5)
    database.conn.execute("select pg_stat_clear_snapshot()")
    row = database.conn.execute(
        "select xact_commit, xact_rollback from pg_stat_database where datname = current_database()"
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def start_latency(server: Server, figures: Figures, scale: Scale) -> None:
    start.measure(server, figures, scale, make_workers=RemoteWorkers)


def backlog_drain(server: Server, figures: Figures, scale: Scale) -> None:
    backlog.measure(server, figures, scale, make_workers=RemoteWorkers)


def idle_workers(server: Server, figures: Figures, scale: Scale) -> None:
    per_s = idle.statements_per_s(
        server, scale, partial(RemoteWorkers, processes=IDLE, concurrency=0)
    )
    figures.put(idle_statements_per_s_100_workers=per_s)
