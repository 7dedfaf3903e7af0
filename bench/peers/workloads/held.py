"""A drain while another transaction holds an old snapshot, so that dead rows stay."""

from __future__ import annotations

from dataclasses import dataclass

from bench.peers.system import System
from bench.peers.workers import Workers
from bench.peers.workload import Lab, Values, drain

WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Held:
    name: str = "held"
    title: str = "Empty jobs under an old snapshot, 1 worker process"
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    def run(self, lab: Lab, system: System) -> Values:
        count = lab.scale.bounded(lab.scale.held, system)
        with lab.place(system) as place, Workers(system, place) as workers:
            workers.warm_up()
            with place.hold_snapshot():
                drained = drain(workers, count, WITHIN_S)
        return {"rate": drained.rate}
