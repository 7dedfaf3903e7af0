"""Keep a steady load and find what grows or gets slower: `make endurance MINUTES=30`.

Exits with 0 when everything was measured, also when a target was missed: machines differ. A whole
run is kept in bench/latest/endurance.json and written to docs/reference/endurance.md.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import psycopg
from rich.console import Console

from bench.endurance import page, results
from bench.endurance.plan import LOAD, Plan
from bench.endurance.samples import Reading, Sampler
from bench.endurance.submitter import Submitter
from bench.endurance.waits import Waits
from bench.figures import Figures
from bench.scale import log
from bench.server import Database, Server
from bench.workers import Workers

APP = "bench.endurance.app:lw"
# As in production: the other benchmarks keep checkpoints out of their short runs.
SETTINGS = {"checkpoint_timeout": "5min", "max_wal_size": "4GB"}
IDLE_S = 120.0
# One of so many readings is shown.
LOGGED = 6


class Run:
    """One worker on a new database, and the load on it."""

    def __init__(self, server: Server, name: str, plan: Plan) -> None:
        self._server = server
        self._plan = plan
        self._database = server.database(name)
        self._wait_log = server.home / f"{name}.waits"
        self._wait_log.unlink(missing_ok=True)

    def measure(
        self,
        rate: float,
        seconds: float,
        at: Mapping[float, Callable[[Database], None]] = MappingProxyType({}),
    ) -> tuple[Waits, list[Reading]]:
        """Keep the load; call functions at their seconds. Without a rate: the maximum."""
        due = sorted(at.items())
        environment = {
            "BENCH_WAIT_LOG": str(self._wait_log),
            "BENCH_WALK_S": str(self._plan.walk_s),
        }
        with Workers(self._database, app=APP, environment=environment) as workers:
            workers.warm_up()
            # The warm-up is not counted: its job type has no such handler.
            sampler = Sampler(self._database, workers.pids[0])
            with Submitter(self._database, rate, seconds) as submitter:
                submitter.begin()
                began, monotonic = time.time(), time.monotonic()
                readings = [sampler.read(0.0)]
                next_at = self._plan.sample_s
                while submitter.is_running:
                    passed = time.monotonic() - monotonic
                    while due and due[0][0] <= passed:
                        due.pop(0)[1](self._database)
                    if passed >= next_at:
                        readings.append(sampler.read(passed))
                        next_at += self._plan.sample_s
                        if len(readings) % LOGGED == 0:
                            _show(readings[-1])
                    workers.check()
                    time.sleep(0.1)
                sent = submitter.sent()
            workers.await_idle(IDLE_S)
        waits = Waits.read(self._wait_log, began)
        if rate and sent < 0.95 * rate * seconds:
            log(f"the submitter kept only {sent / seconds:,.0f}/s of {rate:,.0f}/s")
        self._server.drop(self._database)
        return waits, readings


def _show(reading: Reading) -> None:
    log(
        f"{reading.at:5.0f} s: tables {reading.table_bytes / 1e6:,.0f} MB,"
        f" indexes {reading.index_bytes / 1e6:,.0f} MB, worker {reading.rss_bytes / 1e6:.0f} MB"
    )


class LongTransaction:
    """A transaction of another program that has read and written."""

    def __init__(self) -> None:
        self._conn: psycopg.Connection[tuple[object, ...]] | None = None

    def begin(self, database: Database) -> None:
        log("a transaction begins and stays open")
        self._conn = psycopg.connect(database.dsn)
        self._conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._conn.execute("create table written (number integer)")
        self._conn.execute("select count(*) from laneway.control")

    def end(self, database: Database) -> None:
        log("the transaction ends")
        self.close()

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()


def measure(server: Server, figures: Figures, plan: Plan) -> None:
    window = plan.calibration
    waits, _ = Run(server, "endurance_max", plan).measure(0, window.end)
    most = waits.rate(window)
    log(f"at most {most:,.0f}/s; the load is {LOAD * most:,.0f}/s")
    figures.put(max_rate=most)
    waits, readings = Run(server, "endurance_steady", plan).measure(LOAD * most, plan.steady_s)
    figures.put(**results.steady(plan, waits, readings))
    with ExitStack() as stack:
        transaction = LongTransaction()
        stack.callback(transaction.close)
        at = {plan.hold.begin: transaction.begin, plan.hold.end: transaction.end}
        waits, readings = Run(server, "endurance_held", plan).measure(LOAD * most, plan.held_s, at)
    figures.put(**results.held(plan, waits, readings))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(kept_in: Path = results.KEPT_IN) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float, help="length of the steady run; 30: a whole run")
    chosen = parser.parse_args()
    try:
        plan = Plan(chosen.minutes)
    except ValueError as error:
        parser.error(str(error))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    # Kept only at the end: the page needs the figures of one whole run.
    figures = Figures(None, results.TARGETS)
    try:
        with Server(SETTINGS) as server:
            measure(server, figures, plan)
    except KeyboardInterrupt:
        log("interrupted")
        return 130
    finally:
        figures.show(Console())
    if not plan.is_whole:
        print(f"A smoke check: {plan.minutes:g} minutes are too short for the targets.")
        print(f"Missed at this length: {', '.join(figures.missed) or 'none'}")
        return 0
    figures.kept_in = kept_in
    figures.put()
    page.write()
    print(f"Kept in {kept_in.relative_to(kept_in.parents[2])}, written to docs/reference")
    print(f"Missed: {', '.join(figures.missed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
