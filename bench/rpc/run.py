"""Measure remote workers and print the missed targets; a run is kept in bench/latest/rpc.json."""

from __future__ import annotations

import sys

from bench.figures import LATEST, Target, Targets
from bench.rpc import measures
from bench.run import Sections, main

TARGETS: Targets = {
    "stream_vs_inprocess": Target(0.35),
    "workers20_vs_4": Target(0.9),
    "stream_1": None,
    "in_process": None,
    "tx_per_job": Target(0.05, is_ceiling=True),
    "rollbacks": Target(0, is_ceiling=True),
    "start_p50_ms": Target(10, is_ceiling=True),
    "start_p99_ms": None,
    "backlog_1m_vs_10k": Target(0.9),
    "idle_statements_per_s_100_workers": Target(5, is_ceiling=True),
}
SECTIONS: Sections = {
    "drain": (
        measures.drain_through_streams,
        ("stream_vs_inprocess", "workers20_vs_4", "stream_1", "in_process"),
    ),
    "transactions": (measures.count_transactions, ("tx_per_job", "rollbacks")),
    "start": (measures.start_latency, ("start_p50_ms", "start_p99_ms")),
    "backlog": (measures.backlog_drain, ("backlog_1m_vs_10k",)),
    "idle": (measures.idle_workers, ("idle_statements_per_s_100_workers",)),
}

if __name__ == "__main__":
    sys.exit(main(SECTIONS, LATEST.with_name("rpc.json"), TARGETS))
