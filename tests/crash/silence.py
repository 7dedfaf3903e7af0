"""python -m tests.crash.silence [--seed N] [--quick]

Drop network traffic, freeze leaders, stop PostgreSQL and restore its database under open streams,
let its clock jump by a day, and measure from outside how long recovery takes. Runs the rows C27 to
C31 of the crash suite, prints their figures in one line and exits with 1 beyond a bound.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import signal
import sys

from laneway.testing import faults
from tests.crash.clusters import Clusters
from tests.crash.processes import ROOT
from tests.crash.row import run_row
from tests.crash.rows import ROWS
from tests.crash.run import QUICK, show

PARTS = ("C27", "C28", "C29", "C30", "C31")
BOUNDS = {
    "claims_resume_s": 5.0,
    "worker_back_s": 10.0,
    "longest_request_s": 15.0,
    "schedule_gap_s": 3.0,
    "clock_jump_gap_s": 3.0,
    "ends_untold": 0,
}
FIGURES = ROOT / "bench" / "latest" / "silence.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.silence")
    parser.add_argument("--seed", type=int, default=None, help="repeat the schedule of this seed")
    parser.add_argument("--quick", action="store_true", help="a tenth of the counts")
    options = parser.parse_args()
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    logging.getLogger("laneway").addHandler(logging.NullHandler())
    faults.adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Clusters.open() as clusters:
            return asyncio.run(measure(clusters, QUICK if options.quick else 1.0, seed))
    finally:
        faults.end_all(faults.descendants())


async def measure(clusters: Clusters, scale: float, seed: int) -> int:
    figures: dict[str, float] = {}
    broken = 0
    for part in PARTS:
        print(f"\n{part} {ROWS[part].title}", flush=True)
        result = await run_row(ROWS[part], clusters, scale, seed)
        show(result)
        figures |= result.figures
        broken += len(result.violations)
    beyond = [name for name, bound in BOUNDS.items() if not figures.get(name, 1e9) <= bound]
    print("\n" + ", ".join(f"{n} {figures.get(n, '-')} ≤ {BOUNDS[n]:g}" for n in BOUNDS))
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    for name in beyond:
        print(f"beyond its bound: {name}")
    return 1 if beyond or broken else 0


if __name__ == "__main__":
    sys.exit(main())
