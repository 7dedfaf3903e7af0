"""Measure Laneway next to what PostgreSQL alone can do; print the missed targets.

Exits with 0 when everything was measured, also when a target was missed: machines differ.
A whole run is kept in bench/latest/bench.json, section by section.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench import (
    backlog,
    contention,
    drain,
    held_snapshot,
    idle,
    memory,
    snapshot_drain,
    start,
    submit,
)
from bench.figures import LATEST, TARGETS, Figures, Targets
from bench.scale import QUICK, Scale, log
from bench.server import Server

# The sections of a run with their figures.
Sections = dict[str, tuple[Callable[[Server, Figures, Scale], None], tuple[str, ...]]]
SECTIONS: Sections = {
    "drain": (
        drain.measure,
        (
            "drain_1p_vs_raw",
            "raw_vs_copy",
            "drain_2p_vs_1p",
            "drain_8p_vs_2p",
            "bounded_vs_unbounded",
            "drain_1p",
            "drain_2p",
            "raw",
        ),
    ),
    "submit": (submit.measure, ("submit_many_vs_copy",)),
    "start": (start.measure, ("start_p50_ms", "start_p99_ms")),
    "backlog": (backlog.measure, ("backlog_1m_vs_10k",)),
    "snapshot": (
        held_snapshot.measure,
        (
            "held_snapshot_p50_ms_start",
            "held_snapshot_p99_ms_start",
            "held_snapshot_p50_ms_end",
            "held_snapshot_p99_ms_end",
            "p99_end_vs_start",
        ),
    ),
    "snapshot_drain": (snapshot_drain.measure, ("held_snapshot_last_vs_first",)),
    "contention": (
        contention.measure,
        ("limits_vs_plain", "keys_vs_plain", "blocked_backlog_vs_plain"),
    ),
    "idle": (idle.measure, ("idle_statements_per_s",)),
    "memory": (memory.measure, ("rss_10k_async_mb",)),
}


def _arguments(sections: Sections) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="figures or sections; default: all")
    parser.add_argument("--quick", action="store_true", help="small counts: a smoke check")
    parser.add_argument("--runs", type=int, help="runs of each kind that a ratio compares")
    parser.add_argument("--hold", type=float, help="seconds that a snapshot is held for")
    chosen = parser.parse_args()
    known = [*sections, *(figure for _, made in sections.values() for figure in made)]
    for name in chosen.names:
        if name not in known:
            parser.error(f"{name}: choose from {', '.join(known)}")
    if chosen.runs is not None and chosen.runs < 1:
        parser.error("--runs: at least 1")
    if chosen.hold is not None and chosen.hold < 5:
        parser.error("--hold: at least 5 seconds")
    return chosen


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(sections: Sections = SECTIONS, latest: Path = LATEST, targets: Targets = TARGETS) -> int:
    chosen = _arguments(sections)
    scale = QUICK if chosen.quick else Scale()
    if chosen.runs is not None:
        scale = replace(scale, runs=chosen.runs)
    if chosen.hold is not None:
        scale = replace(scale, hold_s=chosen.hold)
    # Both signals clean up, also where a shell ignores SIGINT for background jobs.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    # The file has the figures of one whole run.
    figures = Figures(None if chosen.quick or chosen.names else latest, targets)
    try:
        with Server() as server:
            for name, (measure, made) in sections.items():
                if not chosen.names or not {name, *made}.isdisjoint(chosen.names):
                    measure(server, figures, scale)
    except KeyboardInterrupt:
        log("interrupted")
        return 130
    finally:
        figures.show(Console())
    if chosen.quick:
        print("A smoke check: the counts are too small for the targets.")
        return 0
    if figures.kept_in is not None:
        print(f"Kept in {latest.relative_to(latest.parents[2])}")
    print(f"Missed: {', '.join(figures.missed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
