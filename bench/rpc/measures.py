"""The figures of remote workers, beside those of workers with a database."""

from __future__ import annotations

import time
from functools import partial
from statistics import median

from bench import backlog, drain, idle, load, start
from bench.figures import Figures
from bench.rpc.remote_workers import RemoteWorkers
from bench.scale import Scale, log
from bench.server import Database, Server

FEW, MANY = 4, 20
# Jobs in hand of each of them.
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
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(scale.runs):
        for kind, run in kinds.items():
            rates[kind].append(run())
        log(f"drain {turn + 1}: " + ", ".join(f"{k} {r[-1]:,.0f}/s" for k, r in rates.items()))
    figures.ratio("stream_vs_inprocess", rates["1 stream"], rates["in process"])
    figures.ratio("workers20_vs_4", rates[f"{MANY} streams"], rates[f"{FEW} streams"])
    figures.put(stream_1=median(rates["1 stream"]), in_process=median(rates["in process"]))
    server.drop(database)


def count_transactions(server: Server, figures: Figures, scale: Scale) -> None:
    """By the server's own count, of all that happened in the database while jobs ran."""
    database = server.database("bench_rpc_transactions")
    with RemoteWorkers(database) as workers:
        workers.warm_up()
        database.pause_claims()
        _, last = load.fill(database, scale.drain)
    # A backend that has ended has told all of its transactions.
    database.vacuum_and_checkpoint()
    before, rolled_back = _transactions(database)
    with RemoteWorkers(database):
        database.resume_claims()
        asked = _ask_until_ended(database, last)
    after, rolled_back_after = _transactions(database)
    own = asked + 2 + 1
    count = after - before - own
    log(f"transactions: {count:,} for {scale.drain:,} jobs, {rolled_back_after - rolled_back} back")
    figures.put(tx_per_job=count / scale.drain, rollbacks=rolled_back_after - rolled_back)
    server.drop(database)


def _ask_until_ended(database: Database, last: int) -> int:
    """Returns how often it asked."""
    deadline = time.monotonic() + drain.DRAIN_S
    asked = 0
    while time.monotonic() < deadline:
        asked += 1
        if database.value(
            "select not exists (select from laneway.ready)"
            " and not exists (select from laneway.lease)"
            " and exists (select from laneway.outcome where seq = %s)",
            last,
        ):
            return asked
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


def start_soon(server: Server, figures: Figures, scale: Scale) -> None:
    start.measure(server, figures, scale, make_workers=RemoteWorkers)


def behind_a_backlog(server: Server, figures: Figures, scale: Scale) -> None:
    backlog.measure(server, figures, scale, make_workers=RemoteWorkers)


def idle_crowd(server: Server, figures: Figures, scale: Scale) -> None:
    per_s = idle.statements_per_s(
        server, scale, partial(RemoteWorkers, processes=IDLE, concurrency=0)
    )
    figures.put(idle_statements_per_s_100_workers=per_s)
