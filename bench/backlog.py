"""The same drain with a short and with a long queue behind it."""

from __future__ import annotations

from bench import load, timing
from bench.figures import Figures, alternate
from bench.scale import Scale
from bench.server import Database, Server
from bench.workers import Workers, WorkersFactory

DRAIN_S = 120.0
WARM_UP = 1000


class Queue:
    """A database in which `waiting` jobs stay behind the `drained` jobs of a run."""

    def __init__(
        self,
        server: Server,
        name: str,
        waiting: int,
        drained: int,
        make_workers: WorkersFactory = Workers,
    ) -> None:
        self.database: Database = server.database(name)
        self._waiting = waiting
        self._make_workers = make_workers
        self._drained = drained

    def run(self) -> float:
        """Drain once; return jobs per second."""
        database = self.database
        database.pause_claims()
        self._fill_up()
        with self._make_workers(database) as workers:
            # The first drain opens connections and plans statements; the second is measured.
            self._drain(workers, WARM_UP)
            self._fill_up()
            after = self._drain(workers, self._drained)
        return timing.rate(database, after, self._drained)

    def _drain(self, workers: Workers, count: int) -> int:
        """Run about `count` jobs, oldest first; return the seq before the first of them."""
        database = self.database
        before = int(database.value("select min(seq) from laneway.ready")) - 1
        database.vacuum_and_checkpoint()
        database.resume_claims()
        workers.await_ended(before + count, DRAIN_S)
        database.pause_claims()
        workers.await_idle(DRAIN_S)
        return before

    def _fill_up(self) -> None:
        there = int(self.database.value("select count(*) from laneway.ready"))
        load.fill(self.database, self._waiting + self._drained - there)


def measure(
    server: Server, figures: Figures, scale: Scale, make_workers: WorkersFactory = Workers
) -> None:
    small = Queue(server, "bench_small", scale.backlog_small, scale.backlog_drain, make_workers)
    large = Queue(server, "bench_large", scale.backlog_large, scale.backlog_drain, make_workers)
    few, many = (f"{count:,} waiting" for count in (scale.backlog_small, scale.backlog_large))
    rates = alternate("backlog", {few: small.run, many: large.run}, scale.runs)
    figures.ratio("backlog_1m_vs_10k", rates[many], rates[few])
    server.drop(small.database)
    server.drop(large.database)
