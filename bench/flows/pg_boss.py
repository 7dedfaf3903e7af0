"""Flows in pg-boss: `boss.flow()` with `dependsOn`, on the same server.

A background task of pg-boss looks for ended parents, at most once a second. An application may also
ask for a look at any time. Both are measured, and the faster one is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.flows.shapes import Shape
from bench.peers.postgres import Postgres
from bench.peers.programs import run_program
from bench.peers.system import CannotInstall, System
from bench.peers.systems.pg_boss import SYSTEMS
from bench.peers.workers import Workers
from bench.scale import log

WITHIN_S = 300.0
_BASE = replace(SYSTEMS[0], program=Path(__file__).with_name("pg_boss.mjs"))
KINDS = {
    "pg-boss each second": _BASE,
    "pg-boss in a loop": replace(_BASE, variables={"RESOLVE_MS": "10"}),
}
# From the first start to the last end, as the rates of Laneway.
_RATE = """
select count(*) / extract(epoch from max(completed_on) - min(started_on)) from pgboss.job
 where state = 'completed'
"""
# Takes the name of a shape and the shape.
Run = Callable[[str, Shape], float]


def kinds(postgres: Postgres) -> dict[str, Run]:
    """The ways to run flows, each with a function that measures one; none if npm cannot install."""
    try:
        _BASE.environment.install()
    except CannotInstall as error:
        log(f"pg-boss is left out: {error}")
        return {}
    versions = run_program(_BASE, {}, "versions")
    has_flows = bool(run_program(_BASE, {}, "has-flows")["has_flows"])
    log(f"pg-boss {versions['pg-boss']}, Node.js {versions['Node.js']}")
    if not has_flows:
        log("this version of pg-boss has no dependencies between jobs: its plain rate is compared")
        return {"pg-boss plain": partial(_rate, postgres, _BASE, "plain")}
    return {name: partial(_flow_rate, postgres, system) for name, system in KINDS.items()}


def _flow_rate(postgres: Postgres, system: System, name: str, shape: Shape) -> float:
    return _rate(postgres, system, name, name, shape)


def _rate(postgres: Postgres, system: System, command: str, name: str, shape: Shape) -> float:
    """Jobs per second of a warm worker that finds all jobs at once."""
    count = len(shape)
    with postgres.place(system) as place, Workers(system, place) as workers:
        workers.warm_up()
        workers.freeze()
        place.execute("delete from pgboss.job")
        place.clean_up()
        run_program(system, place.variables, "submit-flow", command, str(count))
        place.analyze()
        workers.mark()
        workers.resume()
        ended = workers.await_count(count, WITHIN_S) and workers.await_settled(10.0)
        assert ended, f"{system.name}: {name} has not ended after {WITHIN_S:g} s"
        return float(place.value(_RATE))
