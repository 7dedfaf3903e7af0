"""The first jobs of a backlog of a million; for Laneway also of a short one."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.peers.programs import run_program
from bench.peers.side import BATCH
from bench.peers.system import System
from bench.peers.workers import Workers
from bench.peers.workload import Lab, Values

# Jobs that a starting worker runs before the clock starts.
WARM_UP_SHARE = 4
WITHIN_S = 20.0
SLOW_SUBMIT = 20_000


def _name(system: System, size: int) -> str:
    return f"backlog_{size}_{system.name}".replace(" ", "_").replace("-", "_").replace("+", "and")


def fill(lab: Lab, system: System, size: int) -> str:
    """A database with this backlog; copied from a system with the same tables."""
    name = _name(system, size)
    if name in lab.backlogs.values():
        return name
    began = time.monotonic()
    postgres = lab.postgres
    shared = f"{system.schema}_{size}"
    if system.schema and shared in lab.backlogs:
        postgres.create(name, lab.backlogs[shared])
    else:
        postgres.create(name, postgres.template(system))
        with postgres.kept_place(system, name) as place:
            if system.multiply is None:
                _submit(system, place.variables, size)
            else:
                # Too slow to submit a million: copy submitted jobs.
                submitted = min(size, SLOW_SUBMIT)
                _submit(system, place.variables, submitted)
                if size > submitted:
                    place.execute(system.multiply.format(n=size // submitted - 1))
            place.clean_up()
        if system.schema:
            copied = f"filled_{shared}"
            postgres.create(copied, name)
            lab.backlogs[shared] = copied
    lab.backlogs[name] = name
    lab.filling_s += time.monotonic() - began
    return name


def _submit(system: System, variables: dict[str, str], count: int) -> None:
    run_program(system, variables, "submit-many", str(count // BATCH * BATCH), within_s=900.0)


@dataclass(frozen=True, slots=True)
class Backlog:
    is_small: bool = False
    main: str = "rate"
    unit: str = "jobs/s"
    is_lower_better: bool = False

    @property
    def name(self) -> str:
        return "backlog_small" if self.is_small else "backlog"

    @property
    def title(self) -> str:
        length = "10,000" if self.is_small else "1,000,000"
        return f"Empty jobs in front of {length} waiting ones, 1 worker process"

    def run(self, lab: Lab, system: System) -> Values:
        scale = lab.scale
        wanted = scale.bounded(scale.backlog_drain, system)
        skipped = wanted // WARM_UP_SHARE
        if self.is_small:
            # Refilled for each run: what is left at its end is the short backlog.
            name = fill(lab, system, scale.backlog_small + scale.backlog_drain * 5 // 4)
        else:
            attempts = scale.rounds + 3
            name = fill(lab, system, scale.backlog + attempts * 2 * scale.backlog_drain)
        with lab.postgres.kept_place(system, name) as place:
            with Workers(system, place) as workers:
                assert workers.await_count(skipped, WITHIN_S), f"{system.name}: no job ran"
                workers.await_count(skipped + wanted, WITHIN_S)
                points = workers.read().points
            place.clean_up()
        if self.is_small:
            lab.backlogs.pop(name)
            lab.postgres.drop(name)
        begin = next(point for point in points if point[1] >= skipped)
        end = next((point for point in points if point[1] >= skipped + wanted), points[-1])
        return {"rate": (end[1] - begin[1]) / (end[0] - begin[0]) * 1e6}
