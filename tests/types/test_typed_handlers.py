"""Type checkers compare submits, results and options with the handler's signature."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from laneway.config.setting_values import SettingValues
from laneway.config.settings import Settings
from scripts.planted_mistakes import CHECKERS, COUNTED, FILES, Found, planted, summary

CORRECT = (FILES / "correct.py", FILES / "correct_flows.py")
PLANTED = (FILES / "planted_declarations.py", FILES / "planted_flows.py")


@pytest.fixture(scope="module")
def found() -> dict[str, dict[Path, Found]]:
    """The errors of each checker; it reads the standard library and ours once for all files."""
    return {name: run(*CORRECT, *PLANTED, COUNTED) for name, run in CHECKERS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checker_finds_every_planted_mistake(
    checker: str, path: Path, found: dict[str, dict[Path, Found]]
) -> None:
    errors = found[checker][path]
    assert errors.keys() == planted(path).keys(), errors


@pytest.mark.slow
@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checker_accepts_every_correct_use(
    checker: str, path: Path, found: dict[str, dict[Path, Found]]
) -> None:
    assert found[checker][path] == {}


@pytest.mark.slow
def test_both_type_checkers_find_every_mistake_about_jobs(
    found: dict[str, dict[Path, Found]],
) -> None:
    errors = {checker: by_file[COUNTED] for checker, by_file in found.items()}
    assert summary(errors) == ["planted_mistakes_found=8 of 8"]


def test_summary_names_mistakes_that_a_checker_misses_or_adds() -> None:
    marked = planted(COUNTED)
    first, *_ = marked
    others = {line: text for line, text in marked.items() if line != first}
    count, added, missed = summary({"mypy": {1: "made up", **others}, "pyright": marked})
    assert count == f"planted_mistakes_found={len(others)} of {len(marked)}"
    assert added.endswith(":1: mypy unexpected: made up")
    assert missed.endswith(f":{first}: mypy missed: {marked[first]}")


def test_every_setting_is_an_argument_of_laneway() -> None:
    # These two are spelled out.
    others = Settings.model_fields.keys() - {"database_url", "lanes"}
    assert SettingValues.__annotations__.keys() == others


def test_settings_given_in_code_have_the_types_of_the_settings() -> None:
    given = get_type_hints(SettingValues)
    for name, field in Settings.model_fields.items():
        wanted = field.annotation
        if name in given and wanted in (bool, int, float, str):
            assert set(get_args(given[name])) == {wanted, type(None)}, name
