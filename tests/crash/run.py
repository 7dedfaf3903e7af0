"""python -m tests.crash.run [--rows C1,C2] [--seed N] [--quick] [--self-test]

Break real processes, connections and servers, row by row, and check from outside that every law
held. Prints its seed; the same seed repeats the schedule. Exits 1 on any violation.
`--self-test` breaks Laneway itself instead, one law at a time: each row must notice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import signal
import sys
import time

from laneway.testing import faults
from tests.crash.clusters import Clusters
from tests.crash.mutants import MUTANTS, Mutant
from tests.crash.processes import ROOT
from tests.crash.row import run_row
from tests.crash.row_run import Result
from tests.crash.rows import ROWS

QUICK = 0.1
FIGURES = ROOT / "bench" / "latest" / "crash.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.run")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows: C1,C2")
    parser.add_argument("--seed", type=int, default=None, help="repeat the schedule of this seed")
    parser.add_argument("--quick", action="store_true", help="a tenth of the counts")
    parser.add_argument("--self-test", action="store_true", help="break each law and be caught")
    options = parser.parse_args()
    wanted = options.rows.upper().split(",")
    if unknown := [row for row in wanted if row not in ROWS]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    # Warnings of clients about injected faults are expected.
    logging.getLogger("laneway").addHandler(logging.NullHandler())
    faults.adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Clusters.open() as clusters:
            if options.self_test:
                return asyncio.run(self_test(clusters, seed, wanted))
            return asyncio.run(rows(clusters, wanted, QUICK if options.quick else 1.0, seed))
    finally:
        faults.end_all(faults.descendants())


async def rows(clusters: Clusters, wanted: list[str], scale: float, seed: int) -> int:
    began = time.monotonic()
    results = []
    for row in wanted:
        print(f"\n{row} {ROWS[row].title}", flush=True)
        result = await run_row(ROWS[row], clusters, scale, seed)
        results.append(result)
        show(result)
    figures: dict[str, float] = {
        "rows_run": len(results),
        "jobs": sum(result.jobs for result in results),
        "faults": sum(result.faults for result in results),
        "violations": sum(len(result.violations) for result in results),
        "stale_refused": sum(result.stale_refused for result in results),
        "stale_writes_accepted": sum(result.stale_accepted for result in results),
        "acked_lost": sum(result.acked_lost for result in results),
    }
    for result in results:
        figures |= result.figures
    print(f"\n{time.monotonic() - began:.0f} s, seed {seed}")
    for name, value in figures.items():
        print(f"[{name}] {value}")
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if figures["violations"] else 0


def show(result: Result) -> None:
    print(
        f"  {result.jobs} jobs, {result.faults} faults, {result.seconds:.1f} s,"
        f" {result.overlaps} runs overlapped an older attempt"
    )
    for line in result.lines:
        print(f"  {line}")
    for violation in result.violations[:20]:
        print(f"  VIOLATION {violation}")
    if len(result.violations) > 20:
        print(f"  … and {len(result.violations) - 20} more")
    sys.stdout.flush()


async def self_test(clusters: Clusters, seed: int, wanted: list[str]) -> int:
    """Break one law at a time in the database of a row; the row must notice."""
    missed = []
    mutants = [mutant for mutant in MUTANTS if mutant.row in wanted]
    for mutant in mutants:
        result = await run_row(ROWS[mutant.row], clusters, mutant.scale, seed, mutant, mutant.only)
        caught = _caught(mutant, result)
        print(
            f"{'caught' if caught else 'MISSED'} {mutant.name}"
            f" ({mutant.row}, {mutant.law}): {caught}"
        )
        sys.stdout.flush()
        if not caught:
            missed.append(mutant.name)
            show(result)
    print(f"[mutants] {len(mutants)}\n[missed] {len(missed)}")
    return 1 if missed else 0


def _caught(mutant: Mutant, result: Result) -> str:
    found = [violation for violation in result.violations if violation.law == mutant.law]
    return f"{len(found)} times, first: {found[0]}" if found else ""


if __name__ == "__main__":
    sys.exit(main())
