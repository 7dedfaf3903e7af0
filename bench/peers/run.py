"""Measure Laneway beside other job systems on this machine; write JSON, a page and charts.

Exits with 0 when everything was measured, also when a target was missed: machines differ.
A system that cannot be installed is named with the reason.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
from rich.console import Console

from bench.figures import Figures
from bench.peers import plan, report
from bench.peers.comparison import TARGETS, compare
from bench.peers.host import CommitProbe, Watch, describe
from bench.peers.postgres import Postgres
from bench.peers.programs import run_program
from bench.peers.redis import redis_program
from bench.peers.results import LATEST, Results, Sample
from bench.peers.system import ROOT, CannotInstall, System
from bench.peers.workload import QUICK, Lab, Scale
from bench.peers.workloads import idle
from bench.scale import log
from bench.server import Server
from laneway import __version__

MINUTES = 60.0
# The repeats of a noisy run, beyond the rounds, and their share of the time after the first round.
REPEATS = 3
FOR_REPEATS = 0.1
QUICK_SYSTEMS = ("laneway", "pgqueuer", "graphile-worker batched")


def _arguments(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small counts, few systems")
    parser.add_argument("--full", action="store_true", help="all cells, however long it takes")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="the time without --full")
    parser.add_argument("--rounds", type=int, help="runs of each cell")
    parser.add_argument("--systems", help="only these, separated by commas")
    parser.add_argument("--workloads", help="only these, separated by commas")
    parser.add_argument("--report", action="store_true", help="only write the page again")
    chosen = parser.parse_args()
    workloads = [*(workload.name for workload in plan.WORKLOADS), idle.NAME]
    for given, known in ((chosen.systems, names), (chosen.workloads, workloads)):
        for name in given.split(",") if given else []:
            if name not in known:
                parser.error(f"{name}: choose from {', '.join(known)}")
    return chosen


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "no commit"


def install(systems: list[System], results: Results) -> list[System]:
    """The systems that are installed; the others are named with the reason."""
    usable: list[System] = []
    for system in systems:
        try:
            if system.broker == "redis":
                redis_program()
            system.environment.install()
            versions = run_program(system, {}, "versions")
            if system.is_ours:
                versions = {"laneway": f"{__version__} ({_commit()})", **versions}
        except CannotInstall as error:
            results.left_out[system.name] = str(error)
            log(f"left out: {system.name}: {error}")
            continue
        log(f"{system.name}: " + ", ".join(f"{k} {v}" for k, v in versions.items()))
        results.systems[system.name] = {
            "versions": versions,
            "settings": system.settings,
            "language": system.language,
            "broker": system.broker,
            "is_python": system.is_python,
            "gives_up": system.gives_up,
        }
        usable.append(system)
    return usable


class Runner:
    """Runs cells, watches the machine and keeps the samples."""

    def __init__(self, lab: Lab, results: Results, probe: CommitProbe) -> None:
        self._lab = lab
        self._results = results
        self._probe = probe
        self.costs: dict[tuple[str, str], float] = {}

    def _watch(self) -> Watch:
        others: list[psutil.Process] = [self._lab.postgres.process]
        if self._lab.has_redis:
            others.append(self._lab.redis.process)
        return Watch(self._probe, others)

    def run(self, cell: plan.Cell) -> None:
        workload, system = cell.workload, cell.system
        has_failed = system.name in self._results.failed.get(workload.name, {})
        if has_failed and not self._results.of(*cell.key):
            return
        began, filling_s = time.monotonic(), self._lab.filling_s
        try:
            with self._watch() as watch:
                values = workload.run(self._lab, system)
        except Exception as error:
            # One system's failure must not end an hour of measuring; it is shown in the report.
            self._fail(workload.name, system.name, str(error) or type(error).__name__)
            return
        filled_s = self._lab.filling_s - filling_s
        self.costs[cell.key] = time.monotonic() - began - filled_s
        self._results.add(workload.name, system.name, Sample(values, watch.weather))
        noise = ", noisy" if watch.weather.is_noisy(self._results.usual_loop_ms) else ""
        shown = ", ".join(f"{name} {value:,.4g}" for name, value in values.items())
        log(f"{workload.name} {system.name}: {shown} ({self.costs[cell.key]:.0f} s{noise})")

    def _fail(self, workload: str, system: str, reason: str) -> None:
        shown = reason.replace(f"{ROOT}{os.sep}", "")[-500:]
        self._results.failed.setdefault(workload, {})[system] = shown
        log(f"{workload} {system} failed: {reason}")

    def run_idle(self, systems: list[System]) -> None:
        for _ in range(self._lab.scale.idle_rounds):
            with self._watch() as watch:
                together, failed = idle.run_together(self._lab, systems)
            for name, reason in failed.items():
                self._fail(idle.NAME, name, reason)
            for name, values in together.items():
                # The workers of all systems run at once: their work is not foreign.
                calm = replace(watch.weather, foreign_share=0.0)
                self._results.add(idle.NAME, name, Sample(values, calm))
            shown = (f"{name} {one['statements_per_s']:.1f}/s" for name, one in together.items())
            log("idle: " + ", ".join(shown))

    def repeat_noisy(self, cells: list[plan.Cell], rounds: int, until: float) -> None:
        """Run again what was noisy, a few times and while there is time."""
        for _ in range(REPEATS):
            for cell in cells:
                quiet = self._results.quiet(*cell.key)
                cost = self.costs.get(cell.key)
                if cost and len(quiet) < rounds and time.monotonic() + cost < until:
                    self.run(cell)


def _measure(chosen: argparse.Namespace, results: Results, lab: Lab, path: Path) -> None:
    scale = lab.scale
    began = time.monotonic()
    until = began + (1e9 if chosen.full else 60 * chosen.minutes)
    results.postgres = lab.postgres.settings()
    names = chosen.systems.split(",") if chosen.systems else None
    quick = QUICK_SYSTEMS if chosen.quick else None
    systems = [s for s in plan.all_systems() if s.name in (names or quick or [s.name])]
    usable = install(systems, results)
    for system in usable:
        for name, reason in system.cannot.items():
            results.cannot.setdefault(name, {})[system.name] = reason
    wanted = chosen.workloads.split(",") if chosen.workloads else None
    cells = plan.cells(usable, [w for w in plan.WORKLOADS if wanted is None or w.name in wanted])
    runner = Runner(lab, results, probe := CommitProbe(lab.postgres.server.dsn))
    try:
        if wanted is None or idle.NAME in wanted:
            runner.run_idle(usable)
        for number in range(scale.rounds):
            log(f"round {number + 1} of {scale.rounds}: {len(cells)} cells")
            for cell in plan.turn(cells, number):
                if time.monotonic() + runner.costs.get(cell.key, 0.0) < until:
                    runner.run(cell)
                else:
                    log(f"no time left: {cell.workload.name} {cell.system.name}")
            if number == 0 and scale.rounds > 1:
                left = (until - time.monotonic()) * (1 - FOR_REPEATS)
                kept = plan.fitting(cells, runner.costs, scale.rounds - 1, left)
                for cell in cells:
                    if cell not in kept:
                        log(f"one run only, for time: {cell.workload.name} {cell.system.name}")
                cells = kept
            results.minutes = (time.monotonic() - began) / 60
            results.save(path)
        if not chosen.quick:
            runner.repeat_noisy(cells, scale.rounds, until)
    finally:
        if lab.has_redis:
            results.redis = lab.redis.version
        results.minutes = (time.monotonic() - began) / 60
        probe.close()


def main() -> int:
    chosen = _arguments([system.name for system in plan.all_systems()])
    if chosen.report:
        report.write(Results.load(LATEST) if LATEST.exists() else Results())
        return 0
    scale = QUICK if chosen.quick else Scale()
    if chosen.rounds is not None:
        scale = replace(scale, rounds=chosen.rounds)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    results = Results(host=describe(), is_quick=chosen.quick)
    is_whole = not (chosen.quick or chosen.systems or chosen.workloads)
    path = LATEST if is_whole else LATEST.with_name("peers_quick.json")
    try:
        with Server() as server:
            lab = Lab(Postgres(server), scale)
            try:
                _measure(chosen, results, lab, path)
            finally:
                lab.close()
                lab.postgres.close()
    except KeyboardInterrupt:
        log("interrupted")
        return 130
    finally:
        results.figures = compare(results)
        results.save(path)
        figures = Figures(None, TARGETS)
        figures.put(**results.figures)
        console = Console()
        report.show(results, console)
        figures.show(console)
        for name, value in figures.values.items():
            print(f"[{name}] {value:g}")
    if chosen.quick:
        print("A smoke check: the counts are too small for the targets.")
    elif is_whole:
        report.write(results)
        print(f"Missed: {', '.join(figures.missed) or 'none'}")
    print(f"Kept in bench/latest/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
