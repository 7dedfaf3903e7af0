"""Drains in which some jobs must wait: for a limit, for a key, or in front of all others."""

from __future__ import annotations

from collections.abc import Callable

from bench import load, timing
from bench.app import HOLD, LIMIT, LIMITED, NOOP
from bench.figures import Figures, alternate
from bench.load import Kind, all_of
from bench.scale import Scale
from bench.server import Database, Server
from bench.workers import Workers

DRAIN_S = 300.0
# Less than a third of the 1,000 jobs that a worker holds, so that claims reach the limit often.
CEILING = 300
KEYS = 100
BUSY = "busy"


def _a_third_limited(n: int) -> tuple[str, str | None]:
    return (LIMITED, None) if n % 3 == 0 else (NOOP, None)


def _a_tenth_keyed(n: int) -> tuple[str, str | None]:
    return NOOP, f"key {n // 10 % KEYS}" if n % 10 == 0 else None


def drain(database: Database, count: int, kind: Kind) -> float:
    """Jobs per second of one warm, idle worker that finds all jobs at once."""
    database.empty()
    database.tune_limit(LIMIT, CEILING)
    with Workers(database) as running:
        running.warm_up()
        database.pause_claims()
        first, last = load.fill(database, count, kind)
        database.vacuum_and_checkpoint()
        database.resume_claims()
        running.await_drained(last, DRAIN_S)
    return timing.rate(database, first - 1, count)


def drain_behind(database: Database, count: int, blocked: int) -> float:
    """The same behind jobs that cannot run: half under a limit of 0, half on a busy key."""
    database.empty()
    database.tune_limit(LIMIT, 0)
    with Workers(database) as running:
        running.warm_up()
        load.fill(database, 1, all_of(HOLD, BUSY), "{}")
        database.conn.execute("select pg_notify('laneway', 'wake *')")
        running.await_running(1, DRAIN_S)
        database.pause_claims()
        load.fill(database, blocked // 2, all_of(LIMITED))
        load.fill(database, blocked // 2, all_of(NOOP, BUSY))
        database.resume_claims()
        running.await_parked(blocked // 2, DRAIN_S)
        database.pause_claims()
        first, last = load.fill(database, count)
        database.vacuum_and_checkpoint()
        database.resume_claims()
        running.await_ended(last, DRAIN_S)
        running.await_running_at_most(1, DRAIN_S)
        return timing.rate(database, first - 1, count)


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_life")
    kinds: dict[str, Callable[[], float]] = {
        "plain": lambda: drain(database, scale.drain, all_of(NOOP)),
        "a third limited": lambda: drain(database, scale.drain, _a_third_limited),
        "a tenth keyed": lambda: drain(database, scale.drain, _a_tenth_keyed),
    }
    rates = alternate("contention", kinds, scale.runs)
    figures.ratio("limits_vs_plain", rates["a third limited"], rates["plain"])
    figures.ratio("keys_vs_plain", rates["a tenth keyed"], rates["plain"])
    behind = f"behind {scale.blocked:,} that cannot run"
    kinds = {
        "plain": kinds["plain"],
        behind: lambda: drain_behind(database, scale.drain, scale.blocked),
    }
    rates = alternate("contention", kinds, scale.blocked_runs)
    figures.ratio("blocked_backlog_vs_plain", rates[behind], rates["plain"])
    server.drop(database)
