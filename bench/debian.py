"""Measure Laneway on the server that Debian installs and on the embedded one, in turns.

`make test-matrix` runs it under scripts/debian_postgres.py --measured, which starts that server.
Prints the targets that were missed.
"""

from __future__ import annotations

import os
from statistics import median

from rich.console import Console

from bench import drain, start
from bench.figures import LATEST, Figures
from bench.scale import QUICK, log
from bench.server import GivenServer, Server
from bench.workers import Workers

ROUNDS = 3
DRAIN = 3 * QUICK.drain
KEPT_IN = LATEST.with_name("debian.json")


def p50_ms(server: Server) -> float:
    """Median time from submit to start, of an idle worker."""
    database = server.database("bench_start")
    with Workers(database) as workers:
        workers.warm_up()
        latency = median(start.latencies_ms(database, QUICK.starts))
    server.drop(database)
    return latency


def drained_per_s(server: Server) -> float:
    """Jobs per second of one worker process."""
    database = server.database("bench_drain")
    rate = drain.workers(database, DRAIN)
    server.drop(database)
    return rate


def main() -> None:
    figures = Figures(KEPT_IN)
    dsn = os.environ["LANEWAY_TEST_DATABASE_URL"]
    with GivenServer(dsn) as debian, Server() as embedded:
        servers = {"debian": debian, "embedded": embedded}
        starts: dict[str, list[float]] = {name: [] for name in servers}
        drains: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(ROUNDS):
            for name, server in servers.items():
                starts[name].append(p50_ms(server))
                drains[name].append(drained_per_s(server))
                log(f"{name} {turn + 1}: {starts[name][-1]:.1f} ms, {drains[name][-1]:,.0f}/s")
    figures.put(
        debian_vs_embedded_start_p50=median(starts["debian"]) / median(starts["embedded"]),
        debian_vs_embedded_drain=median(drains["debian"]) / median(drains["embedded"]),
    )
    figures.show(Console())
    print(f"Missed: {', '.join(figures.missed) or 'none'}")


if __name__ == "__main__":
    main()
