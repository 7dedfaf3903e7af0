"""Handlers that wait for 1 ms or 50 ms, and handlers that keep a processor busy."""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers.host import burns_per_s
from bench.peers.system import System
from bench.peers.workers import Workers
from bench.peers.workload import Lab, Values, drain

WITHIN_S = 4.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Handlers that wait, as for a network."""

    ms: int
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    @property
    def name(self) -> str:
        return f"wait_{self.ms}ms"

    @property
    def title(self) -> str:
        return f"Handlers that wait for {self.ms} ms, 1 worker process"

    def run(self, lab: Lab, system: System) -> Values:
        count = lab.scale.bounded(lab.scale.handlers, system)
        with lab.place(system) as place, Workers(system, place, 1, f"sleep:{self.ms}") as workers:
            workers.warm_up()
            return {"rate": drain(workers, count, WITHIN_S).rate}


@dataclass(frozen=True, slots=True)
class Computing:
    """Handlers that compute, in two processes; the same OpenSSL function in every language."""

    name: str = "cpu"
    title: str = "Handlers that compute for about 2 ms, 2 worker processes"
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    def run(self, lab: Lab, system: System) -> Values:
        count = lab.scale.bounded(lab.scale.cpu, system)
        ideal = burns_per_s()
        with lab.place(system) as place, Workers(system, place, 2, "cpu") as workers:
            workers.warm_up()
            rate = drain(workers, count, 2 * WITHIN_S).rate
        return {"rate": rate, "of_two_processors": rate / (2 * ideal)}
