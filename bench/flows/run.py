"""Measure flows, sleeps and events; print the missed targets. Kept in bench/latest/flows.json."""

from __future__ import annotations

import sys

from bench.figures import LATEST, Target, Targets
from bench.flows import before, drains, events, parked
from bench.run import Sections, main

TARGETS: Targets = {
    "plain_vs_before": Target(0.97),
    "fanout_vs_plain": Target(0.5),
    "fanin_vs_plain": Target(0.5),
    "layered_vs_plain": Target(0.35),
    "fanout_vs_pgboss": Target(1.5),
    "fanin_vs_pgboss": Target(1.5),
    "layered_vs_pgboss": Target(1.5),
    "plain": None,
    "fanout": None,
    "fanin": None,
    "layered": None,
    "pgboss_fanout": None,
    "pgboss_fanin": None,
    "pgboss_layered": None,
    "chain_hop_ms": Target(5, is_ceiling=True),
    "idle_statements_per_s": Target(2, is_ceiling=True),
    "waiting_100k_mb": Target(50, is_ceiling=True),
    "waiting_100k_stored_mb": None,
    # The sender kept its pace of 1,000 a second.
    "events_per_s": Target(950),
    "event_p50_ms": None,
    "event_p99_ms": Target(50, is_ceiling=True),
}
_SHAPES = ("fanout", "fanin", "layered")
SECTIONS: Sections = {
    "shapes": (
        drains.measure,
        (
            "plain",
            *_SHAPES,
            *(f"{name}_vs_plain" for name in _SHAPES),
            *(f"{name}_vs_pgboss" for name in _SHAPES),
            *(f"pgboss_{name}" for name in _SHAPES),
        ),
    ),
    "chain": (drains.measure_chain, ("chain_hop_ms",)),
    "parked": (
        parked.measure,
        ("idle_statements_per_s", "waiting_100k_mb", "waiting_100k_stored_mb"),
    ),
    "events": (events.measure, ("events_per_s", "event_p50_ms", "event_p99_ms")),
    "before": (before.measure, ("plain_vs_before",)),
}

if __name__ == "__main__":
    sys.exit(main(SECTIONS, LATEST.with_name("flows.json"), TARGETS))
