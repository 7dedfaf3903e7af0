"""The comparison with other job systems: its plan, its medians and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers import plan, report
from bench.peers.comparison import compare
from bench.peers.host import Weather
from bench.peers.results import Results, Sample
from bench.peers.system import System

QUIET = Weather(loop_ms=1.0, commit_ms=1.0, foreign_share=0.01)
NOISY = Weather(loop_ms=1.0, commit_ms=1.0, foreign_share=0.5)


def _results(rates: dict[str, list[tuple[float, Weather]]]) -> Results:
    results = Results()
    for name, samples in rates.items():
        is_python = name != "pg-boss"
        results.systems[name] = {"is_python": is_python, "broker": "postgres", "gives_up": "order"}
        for rate, weather in samples:
            results.add("drain_1p", name, Sample({"rate": rate, "cpu_us": 1e6 / rate}, weather))
    return results


def test_median_leaves_noisy_runs_out_if_enough_were_quiet() -> None:
    results = _results({"laneway": [(10, QUIET), (11, QUIET), (12, QUIET), (1, NOISY)]})
    found = results.summary("drain_1p", "laneway", "rate")
    assert found is not None
    assert (found.median, found.low, found.runs, found.noisy) == (11, 10, 3, 0)


def test_median_with_too_few_quiet_runs_counts_all_and_names_the_noise() -> None:
    results = _results({"laneway": [(10, QUIET), (20, NOISY), (30, NOISY)]})
    found = results.summary("drain_1p", "laneway", "rate")
    assert found is not None
    assert (found.median, found.runs, found.noisy) == (20, 3, 2)


def test_figures_compare_the_defaults_with_the_best_and_the_best_python() -> None:
    one = {"laneway": 20.0, "laneway tuned": 90.0, "pg-boss": 40.0, "pgqueuer": 10.0}
    figures = compare(_results({name: [(rate, QUIET)] for name, rate in one.items()}))
    assert figures["drain_1p_vs_best"] == 0.5
    assert figures["drain_1p_vs_best_python"] == 2.0
    assert figures["cpu_vs_best_python"] == 0.5
    assert "held_vs_best" not in figures


def test_short_run_keeps_essential_cells_and_drops_the_least_important() -> None:
    cells = plan.cells(plan.all_systems(), plan.WORKLOADS)
    costs = {cell.key: 10.0 for cell in cells}
    essential = [cell for cell in cells if cell.is_essential]
    assert plan.fitting(cells, costs, 4, 0.0) == essential
    assert plan.fitting(cells, costs, 4, 40.0 * len(cells)) == cells


def test_each_round_starts_with_another_system() -> None:
    cells = plan.cells(plan.all_systems(), plan.WORKLOADS[:1])
    assert plan.turn(cells, 1) == [*cells[1:], cells[0]]


def test_page_names_winners_and_systems_that_were_left_out() -> None:
    results = _results({"laneway": [(20, QUIET)], "pg-boss": [(40, QUIET)]})
    results.left_out["oban"] = "needs Python 3.12"
    page = report.render(results)
    assert "**oban is left out**: needs Python 3.12" in page
    assert "- Empty jobs, 1 worker process: pg-boss 40.0 jobs/s, Laneway 20.0 jobs/s." in page
    assert "It gives up: order." in page


def test_kept_samples_are_read_back(tmp_path: Path) -> None:
    results = _results({"laneway": [(20, QUIET)]})
    results.save(tmp_path / "peers.json")
    assert Results.load(tmp_path / "peers.json") == results


@pytest.mark.parametrize("system", plan.all_systems(), ids=lambda system: system.name)
def test_every_system_has_its_program(system: System) -> None:
    assert system.program.is_file()
    assert {*system.cannot} <= {workload.name for workload in plan.WORKLOADS}
