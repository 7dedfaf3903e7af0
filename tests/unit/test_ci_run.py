"""Laws of .ci/run, with a `make` and an installer that only print."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = "===== 7 passed, 1 skipped in 3.00s ====="
JOURNEYS = "===== 2 passed in 1.00s ====="


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run_ci(
    folder: Path, *, tests: int = 0, journeys: int = 0, browser: int = 0
) -> tuple[int, list[str]]:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    write_program(folder / "scripts/need_debian.sh", f"echo 'laneway: no root' >&2; exit {browser}")
    write_program(folder / "bin/timeout", 'echo "at most $1 s: $2 $3"; shift; exec "$@"')
    write_program(
        folder / "bin/make",
        f"case $1 in test) echo '{TESTS}'; exit {tests} ;;"
        f" e2e) echo \"$2\"; echo '{JOURNEYS}'; exit {journeys} ;; esac",
    )
    done = subprocess.run(
        [folder / ".ci/run"],
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_ci_runs_journeys_and_ends_with_the_line_of_the_tests(tmp_path: Path) -> None:
    code, lines = run_ci(tmp_path)
    assert (code, lines[-1]) == (0, TESTS)
    assert "ARGS=--only journeys" in lines
    assert "at most 1500 s: make e2e" in lines


def test_ci_without_browser_says_why_it_skips_journeys(tmp_path: Path) -> None:
    code, lines = run_ci(tmp_path, browser=1)
    assert (code, lines[-1]) == (0, TESTS)
    assert JOURNEYS not in lines
    assert "journeys skipped, because Chromium is missing: laneway: no root" in lines


@pytest.mark.parametrize("failed", [{"tests": 2}, {"journeys": 2}])
def test_ci_is_red_if_tests_or_journeys_fail(tmp_path: Path, failed: dict[str, int]) -> None:
    code, lines = run_ci(tmp_path, **failed)
    assert code != 0
    assert lines[-1] == TESTS
