"""Submits without a worker: in bulk, and one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from bench.peers.programs import run_program
from bench.peers.system import System
from bench.peers.workload import Lab, Values


@dataclass(frozen=True, slots=True)
class SubmitMany:
    name: str = "submit_many"
    title: str = "Bulk submit, 1,000 jobs per call"
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    def run(self, lab: Lab, system: System) -> Values:
        count = lab.scale.bounded(lab.scale.submit_many, system)
        with lab.place(system) as place:
            place.clean_up()
            result = run_program(system, place.variables, "submit-many", str(count))
        return {"rate": count / result["seconds"]}


@dataclass(frozen=True, slots=True)
class Submit:
    name: str = "submit"
    title: str = "Single submits, one after the other"
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    def run(self, lab: Lab, system: System) -> Values:
        with lab.place(system) as place:
            place.clean_up()
            result = run_program(system, place.variables, "submit", str(lab.scale.submit), "0")
        took = result["took"]
        return {"rate": len(took) / sum(took), "p50_ms": 1000 * median(took)}
