"""Empty jobs, all there at once, for 1, 2, 8 and 16 warm worker processes."""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers.system import System
from bench.peers.workers import Workers
from bench.peers.workload import Lab, Values, drain

WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Drain:
    processes: int
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    @property
    def name(self) -> str:
        return f"drain_{self.processes}p"

    @property
    def title(self) -> str:
        return f"Empty jobs, {self.processes} worker process" + "es" * (self.processes > 1)

    def run(self, lab: Lab, system: System) -> Values:
        scale = lab.scale
        wanted = scale.drain if self.processes == 1 else scale.drain_many
        count = scale.bounded(wanted, system)
        with lab.place(system) as place, Workers(system, place, self.processes) as workers:
            workers.warm_up()
            drained = drain(workers, count, WITHIN_S)
        values = {
            "rate": drained.rate,
            "cpu_worker_us": drained.cpu_worker_us,
            "cpu_store_us": drained.cpu_store_us,
            "cpu_us": drained.cpu_worker_us + drained.cpu_store_us,
            "resident_mb": drained.resident_mb,
        }
        return values | ({"wal_bytes": drained.wal_bytes} if system.broker == "postgres" else {})
