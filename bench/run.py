"""`python -m bench.run [sections] [--quick] [--runs N]`: measures, shows, keeps, judges.

Exits with 0 when every target was met, with 1 when one was missed or something went wrong.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from bench import backlog, drain, idle, memory, snapshot, start, submit
from bench.figures import LATEST, Figures
from bench.scale import QUICK, Scale, say
from bench.server import Server

Section = Callable[[Server, Figures, Scale], None]

SECTIONS: dict[str, Section] = {
    "drain": drain.measure,
    "submit": submit.measure,
    "start": start.measure,
    "backlog": backlog.measure,
    "snapshot": snapshot.measure,
    "idle": idle.measure,
    "memory": memory.measure,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="small counts: does it work at all")
    parser.add_argument("--runs", type=int, help="runs of each kind that a ratio takes turns with")
    chosen = parser.parse_args()
    for name in chosen.sections:
        if name not in SECTIONS:
            parser.error(f"{name}: choose from {', '.join(SECTIONS)}")
    if chosen.runs is not None and chosen.runs < 1:
        parser.error("--runs: at least 1")
    return chosen


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    chosen = _arguments()
    scale = QUICK if chosen.quick else Scale()
    if chosen.runs is not None:
        scale = replace(scale, runs=chosen.runs)
    # A terminated run tidies up like an interrupted one.
    signal.signal(signal.SIGTERM, _interrupt)
    figures = Figures(is_kept=not chosen.quick)
    try:
        with Server() as server:
            for name in chosen.sections or SECTIONS:
                SECTIONS[name](server, figures, scale)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        figures.show(Console())
    if chosen.quick:
        print("A smoke check: the counts are too small for the targets.")
        return 0
    print(f"Kept in {LATEST.relative_to(LATEST.parents[2])}")
    if figures.missed:
        print(f"Missed: {', '.join(figures.missed)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
