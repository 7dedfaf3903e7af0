"""Type checkers compare submits, results and options with the handler's signature."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args, get_type_hints

import pytest

from laneway.config.setting_values import SettingValues
from laneway.config.settings import Settings
from scripts.planted_mistakes import CHECKERS, FILES, ROOT, planted


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checker_finds_every_mistake_in_declarations(checker: str) -> None:
    path = FILES / "planted_declarations.py"
    found = CHECKERS[checker](path)
    assert found.keys() == planted(path).keys(), found


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checker_accepts_every_correct_use(checker: str) -> None:
    assert CHECKERS[checker](FILES / "correct.py") == {}


@pytest.mark.slow
def test_both_type_checkers_find_every_mistake_about_jobs() -> None:
    command = [sys.executable, "-m", "scripts.planted_mistakes"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed == "planted_mistakes_found=8 of 8\n"


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
