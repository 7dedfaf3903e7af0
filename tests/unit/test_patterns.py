"""Regular expressions take linear time, whatever they are given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.redos_lint import SOURCE, Found, collect, problem


@pytest.fixture(scope="module")
def patterns() -> list[Found]:
    """All patterns; not at import, for that would be in every process that runs tests."""
    return collect()


def test_regular_expression_takes_linear_time(patterns: list[Found]) -> None:
    assert {one.place: wrong for one in patterns if (wrong := problem(one))} == {}


def test_every_call_of_re_is_checked(patterns: list[Found]) -> None:
    calls = r"\bre\.(?:compile|match|fullmatch|search|findall|finditer|split|subn?)\("
    sources = [path for path in SOURCE.rglob("*.py") if "_generated" not in path.parts]
    written = sum(len(re.findall(calls, path.read_text("utf-8"))) for path in sources)
    assert len(patterns) == written > 50


@pytest.mark.parametrize(
    "text,method",
    [
        (r"(a+)+$", "fullmatch"),
        (r"(a|aa)+!", "match"),
        (r"\s+$", "search"),
        (r"[a-z]+://[^@]*@", "search"),
        (r'"(?:[^"\\]|\\.)*"', "sub"),
        (r"\([^)]*\)", "search"),
        (r"\$\{[^}]*\}", "sub"),
        (r"\|.*\^", "search"),
        (r"(.*),(.*),(.*)!", "search"),
        (r"(.*),(.*),(.*)!", "match"),
    ],
)
def test_lint_finds_nonlinear_patterns(text: str, method: str) -> None:
    assert problem(Found("here", re.compile(text), {method})) is not None


def test_pattern_that_is_not_known_before_it_runs_is_named(tmp_path: Path) -> None:
    package = tmp_path / "laneway"
    package.mkdir()
    (package / "errors.py").write_text("import re\n\ndef f(given): return re.compile(given)\n")
    with pytest.raises(ValueError, match=r"errors\.py:3: the pattern is only known at run time"):
        collect(package)
