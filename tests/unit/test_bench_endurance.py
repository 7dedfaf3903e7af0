"""The endurance run: its windows, percentiles, growth, sizing and page."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from bench.endurance import page, results
from bench.endurance.plan import Plan, Window
from bench.endurance.samples import Reading, end_of_growth, growth, within
from bench.endurance.submitter import due
from bench.endurance.waits import Second, WaitLog, Waits, bucket_of, ms_of

MB = 1_000_000


def reading(at: float, megabytes: float = 100, **more: float) -> Reading:
    values = {"rss_bytes": 50 * MB, "worker_cpu_s": 0.0, "database_cpu_s": 0.0, "submitted": 0}
    table = int(megabytes * MB)
    return Reading(at=at, table_bytes=table, index_bytes=0, **{**values, **more})  # type: ignore[arg-type]


def waits_of(seconds: dict[int, dict[float, int]]) -> Waits:
    """Waits in milliseconds, by second from the start."""
    counted = [
        Second(at, Counter({bucket_of(ms): n for ms, n in waits.items()}))
        for at, waits in seconds.items()
    ]
    return Waits(counted, began=0.0)


def test_windows_scale_with_the_minutes() -> None:
    whole, short = Plan(30), Plan(3)
    assert (whole.first, whole.last) == (Window(300, 600), Window(1500, 1800))
    assert (short.first, short.last) == (Window(30, 60), Window(150, 180))
    assert (whole.hold, whole.held_s) == (Window(300, 1500), 2100)
    assert (short.hold, short.held_s) == (Window(30, 150), 210)
    assert whole.hold.end - whole.end_of_hold.begin == 300
    assert whole.calibration == Window(20, 60)
    assert (whole.is_whole, short.is_whole) == (True, False)
    # The pause of retention is never longer than in production.
    assert (Plan(60).walk_s, whole.walk_s, short.walk_s) == (300, 300, 30)
    with pytest.raises(ValueError, match="at least 1"):
        Plan(0.5)


def test_percentile_covers_all_seconds_of_a_window_and_no_others() -> None:
    waits = waits_of({0: {500: 10}, 10: {1: 98}, 11: {20: 1, 40: 1}, 20: {500: 10}})
    window = Window(10, 20)
    assert waits.percentile_ms(window, 50) == pytest.approx(1, rel=0.02)
    assert waits.percentile_ms(window, 99) == pytest.approx(20, rel=0.02)
    assert waits.percentile_ms(window, 100) == pytest.approx(40, rel=0.02)
    assert waits.rate(window) == 10
    assert math.isnan(waits.percentile_ms(Window(30, 40), 99))


@pytest.mark.parametrize("ms", [0.01, 0.5, 3, 250, 60_000])
def test_bucket_is_within_two_percent_of_the_wait(ms: float) -> None:
    assert ms_of(bucket_of(ms)) == pytest.approx(ms, rel=0.02)


def test_wait_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "waits"
    log = WaitLog(path)
    for at_s, wait_ms in ((100.0, 2), (100.9, 2), (101.1, 8), (103.0, 4)):
        log.add(int(at_s * 1e9), int(wait_ms * 1e6))
    log.close()
    waits = Waits.read(path, began=99.5)
    assert waits.rate(Window(0, 8)) == 0.5
    assert waits.rate(Window(1, 2)) == 2
    assert waits.percentile_ms(Window(0, 5), 100) == pytest.approx(8, rel=0.02)


def test_submitter_catches_up_with_its_rate_in_bounded_batches() -> None:
    assert due(rate=200, passed_s=1.0, sent=150) == 50
    assert due(rate=200, passed_s=1.0, sent=200) == 0
    assert due(rate=200, passed_s=100.0, sent=0) == 1000


def test_growth_compares_means_and_a_window_needs_readings() -> None:
    assert growth([90, 110], [100, 120]) == 1.1
    assert [r.at for r in within([reading(1), reading(5), reading(9)], Window(4, 9))] == [5]
    with pytest.raises(AssertionError, match="no reading"):
        within([reading(1)], Window(4, 9))


def test_end_of_growth_is_the_last_new_maximum() -> None:
    sizes = [(0, 100), (10, 200), (20, 260), (30, 300), (40, 301), (50, 250)]
    readings = [reading(at, megabytes) for at, megabytes in sizes]
    # After 40 s it is within the noise.
    assert end_of_growth(readings, after=15) == 15
    assert end_of_growth(readings, after=30) == 0


def whole_run() -> dict[str, float]:
    """A run of 30 minutes: 1,000 jobs/s, 2 KB each, no deletes in its first minute."""
    plan = Plan(30)
    readings = [
        reading(
            at,
            100 + min(at, 60) * 2,
            worker_cpu_s=at * 0.2,
            database_cpu_s=at * 0.3,
            submitted=at * 1000,
            rss_bytes=(50 if at < 1500 else 52) * MB,
        )
        for at in range(0, 1800, 10)
    ]
    waits = waits_of({at: {2 if at < 1500 else 3: 1000} for at in range(1800)})
    held = waits_of({at: {2 if at < 300 else 5: 1000} for at in range(2100)})
    grown = [reading(at, min(at, 1620)) for at in range(0, 2100, 10)]
    figures = {"max_rate": 1700.0, **results.steady(plan, waits, readings)}
    figures = {name: value for name, value in figures.items() if value}
    # The readings have no indexes.
    return {**figures, **results.held(plan, held, grown)}


def test_figures_of_a_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "growth", lambda a, b: growth(a, b) if any(a) else 1.0)
    figures = whole_run()
    assert set(figures) == set(results.TARGETS)
    assert figures["rate"] == figures["rate_last_vs_first"] * 1000 == 1000
    assert figures["p99_last_vs_first"] == pytest.approx(1.5, rel=0.04)
    assert figures["table_growth"] == 1
    assert figures["rss_growth_mb"] == 2
    assert figures["worker_cores"] == pytest.approx(0.2)
    assert figures["jobs_per_day_per_core"] == pytest.approx(1000 * 86_400 / 0.5)
    # 2 MB per 1,000 jobs.
    assert figures["gb_per_million_jobs_kept"] == pytest.approx(2.0)
    assert figures["held_p99_vs_before"] == pytest.approx(2.5, rel=0.04)
    assert figures["held_growth_ends_minutes"] == 2


def test_page_shows_the_figures_and_says_if_there_are_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(results, "growth", lambda a, b: growth(a, b) if any(a) else 1.0)
    kept = tmp_path / "endurance.json"
    monkeypatch.setattr(page, "KEPT_IN", kept)
    assert "Not measured yet" in page.render(page.kept_figures())
    kept.write_text(json.dumps(whole_run()))
    text = page.render(page.kept_figures())
    assert "Not measured yet" not in text
    assert "| `held_p99_vs_before` | 2.49 | **no** |" in text
    assert "| `table_growth` | 1 | yes |" in text
    assert "**173 million no-op jobs per day and core.** PostgreSQL uses 60%" in text
    assert "**2 GB per million jobs kept**" in text
    assert set(page.MEANINGS) == set(results.TARGETS)


def test_written_page_has_the_current_method() -> None:
    method, _, _ = page.render(None).partition("## A day's sizing")
    assert page.PAGE.read_text("utf-8").startswith(method)
