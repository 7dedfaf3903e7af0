"""Statements per second of an idle worker, from the server's log."""

from __future__ import annotations

import re
import time
from pathlib import Path

from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers, WorkersFactory

NAME = "bench_idle"
# The log has one line per executed statement in either protocol, and none for those in functions.
_EXECUTED = re.compile(rf"\] {NAME}\|laneway [^|]*\| LOG:  (?:execute [^:]*|statement):")


def _executed(log: Path) -> int:
    with log.open(errors="replace") as lines:
        return sum(1 for line in lines if _EXECUTED.search(line))


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    figures.put(idle_statements_per_s=statements_per_s(server, scale, Workers))


def log_statements(database: Database) -> None:
    """Let the server log the statements of all clients that connect from now on."""
    database.conn.execute(f"alter database {NAME} set log_statement = 'all'")
    database.conn.execute("set log_statement = 'none'")


def statements_per_s(server: Server, scale: Scale, make_workers: WorkersFactory) -> float:
    database = server.database(NAME)
    log_statements(database)
    # Autovacuum runs none of our statements, but its commits count.
    database.vacuum_and_checkpoint()
    with make_workers(database):
        per_s = count_statements(server, database, scale)
    server.drop(database)
    return per_s


def count_statements(server: Server, database: Database, scale: Scale) -> float:
    """Statements per second of the workers that run now."""
    commits = "select xact_commit from pg_stat_database where datname = current_database()"
    # A backend reports its last commits only after ten idle seconds.
    time.sleep(scale.idle_before_s)
    logged, committed = _executed(server.log_path), int(database.value(commits))
    began = time.monotonic()
    time.sleep(scale.idle_s)
    seconds = time.monotonic() - began
    logged = _executed(server.log_path) - logged
    committed = int(database.value(commits)) - committed
    log(f"idle: {logged} statements and {committed} commits in {seconds:.0f} s")
    return logged / seconds
