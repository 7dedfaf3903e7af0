"""`make first-hour`: which results fail the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import first_hour
from scripts.first_hour import BOUNDS, Result, judge

MET = {name: float(bound) for name, bound in BOUNDS.items()}


def judged(**changed: float) -> Result:
    result = Result()
    judge({**MET, **changed}, result)
    return result


def test_time_beyond_its_bound_is_named_and_does_not_fail() -> None:
    assert judged() == Result()
    found = judged(import_s=9.0, help_s=0.3)
    assert (found.missed, found.failed) == (["import_s 9, bound 0.25", "help_s 0.3, bound 0.2"], [])


def test_size_beyond_its_bound_fails() -> None:
    found = judged(core_mb=60.1, core_packages=27.0)
    assert found == Result(failed=["core_mb 60.1, bound 60", "core_packages 27, bound 26"])


def test_planted_mistake_that_is_not_found_fails() -> None:
    assert judged(planted_mistakes_found=7.0).failed == ["planted_mistakes_found 7 of 8"]


@pytest.mark.parametrize("name", BOUNDS)
def test_figure_that_was_not_measured_fails(name: str) -> None:
    result = Result()
    judge({key: value for key, value in MET.items() if key != name}, result)
    assert result.failed == [f"{name} was not measured"]


@pytest.mark.parametrize("failed, code", [([], 0), (["tests/install on Python 3.11"], 1)])
def test_exit_code_is_that_of_the_checks(
    failed: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installations(home: Path, figures: dict[str, float]) -> Result:
        figures.update(MET, import_s=9.0)
        return Result(failed=list(failed))

    monkeypatch.setattr(first_hour, "installations", installations)
    monkeypatch.setattr(first_hour, "planted_mistakes", lambda: first_hour.PLANTED)
    monkeypatch.setattr(first_hour, "ROOT", tmp_path)
    monkeypatch.setattr(first_hour, "FIGURES", tmp_path / "figures.json")
    assert first_hour.main() == code
    kept = json.loads((tmp_path / "figures.json").read_text())
    assert (kept["failed"], kept["missed"]) == (failed, ["import_s 9, bound 0.25"])
