"""From just before a submit to the first line of the handler, in an idle worker."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles

from bench.peers.programs import run_program
from bench.peers.system import System
from bench.peers.workers import Workers
from bench.peers.workload import Lab, Values

INTERVAL_S = 0.025
WARM_UP = 10


@dataclass(frozen=True, slots=True)
class Start:
    name: str = "start"
    title: str = "Start of a job in an idle worker, p50"
    main: str = "p50_ms"
    unit: str = "ms"
    is_lower_better: bool = True

    def run(self, lab: Lab, system: System) -> Values:
        count = lab.scale.starts + WARM_UP
        with lab.place(system) as place, Workers(system, place) as workers:
            workers.warm_up()
            place.clean_up()
            workers.mark()
            run_program(system, place.variables, "submit", str(count), str(INTERVAL_S))
            workers.await_count(count, 15.0)
            waited = workers.read().waited_us
        assert len(waited) == count, f"{system.name}: {len(waited)} of {count} jobs started"
        cuts = quantiles(waited[WARM_UP:], n=100, method="inclusive")
        return {"p50_ms": cuts[49] / 1000, "p99_ms": cuts[98] / 1000}
