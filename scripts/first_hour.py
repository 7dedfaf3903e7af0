"""Measure what a new user meets first: `make first-hour`.

Builds the wheel and the sdist, installs the core without extras into fresh environments and runs
tests/install in each. Prints the figures with their bounds; bench/latest/first_hour.json keeps
them. What does not work, was not measured, or is larger than its bound fails the run. A start that
took too long is only named: it depends on the machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from scripts.core_install import ROOT, build, find_python, make_venv, rebuild, size_of

FIGURES: Final = ROOT / "bench" / "latest" / "first_hour.json"
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
PLANTED: Final = 8
# Figure and bound: the least for the first, the greatest for the others. Times do not fail a run.
BOUNDS: Final = {
    "planted_mistakes_found": PLANTED,
    "core_mb": 60,
    "core_packages": 26,
    "import_s": 0.25,
    "help_s": 0.2,
}
TIMES: Final = frozenset({"import_s", "help_s"})
RUNS: Final = 15


@dataclass
class Result:
    """The bounds that a run missed, and the checks that failed."""

    missed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def main() -> int:
    figures: dict[str, float] = {}
    found = planted_mistakes()
    if found is not None:
        figures["planted_mistakes_found"] = found
    with tempfile.TemporaryDirectory(prefix="laneway-first-hour-") as home:
        result = installations(Path(home), figures)
    judge(figures, result)
    for name, value in figures.items():
        print(f"{name}={value:g}")
    print("bounds: " + ", ".join(f"{name} {bound:g}" for name, bound in BOUNDS.items()))
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    kept = {**figures, "missed": result.missed, "failed": result.failed}
    FIGURES.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
    print("missed: " + ("; ".join(result.missed) or "nothing"))
    print("failed: " + ("; ".join(result.failed) or "nothing"))
    print(f"Kept in {FIGURES.relative_to(ROOT)}")
    return 1 if result.failed else 0


def judge(figures: Mapping[str, float], result: Result) -> None:
    """Compare the figures with their bounds; all but times beyond them are failures."""
    for name, bound in BOUNDS.items():
        value = figures.get(name)
        if value is None:
            result.failed.append(f"{name} was not measured")
        elif name == "planted_mistakes_found":
            if value < bound:
                result.failed.append(f"{name} {value:g} of {bound:g}")
        elif value > bound:
            beyond = result.missed if name in TIMES else result.failed
            beyond.append(f"{name} {value:g}, bound {bound:g}")


def planted_mistakes() -> int | None:
    """Count the planted typing mistakes that both type checkers find; None if they did not run."""
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.planted_mistakes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"planted_mistakes_found=(\d+)", ran.stdout)
    if found is None:
        print(f"scripts.planted_mistakes: {ran.stderr.strip() or ran.stdout.strip()}")
        return None
    return int(found[1])


def installations(home: Path, figures: dict[str, float]) -> Result:
    """Install on every version of Python that this machine has; measure the first."""
    wheel, sdist = build("wheel", home / "wheel"), build("sdist", home / "sdist")
    result = Result()
    if _names(rebuild(sdist, home / "rebuilt")) != _names(wheel):
        result.failed.append("the sdist builds a wheel with other files")
    for version in VERSIONS:
        base = find_python(version)
        if base is None:
            print(f"Python {version}: not on this machine")
            result.missed.append(f"Python {version} is not on this machine")
            continue
        python = make_venv(base, wheel, home / version)
        if "core_mb" not in figures:
            measure(python, figures)
        if not _is_green(python):
            result.failed.append(f"tests/install on Python {version}")
    return result


def measure(python: Path, figures: dict[str, float]) -> None:
    """The size of the core and the times of its two most frequent starts."""
    [site] = python.parents[1].glob("lib/python*/site-packages")
    figures["core_mb"] = round(size_of(site) / 1e6, 1)
    figures["core_packages"] = len(list(site.glob("*.dist-info")))
    importing = [str(python), "-c", "from laneway import Laneway, Context"]
    figures["import_s"] = round(_quickest(importing), 3)
    figures["help_s"] = round(_quickest([str(python.with_name("laneway")), "--help"]), 3)


def _quickest(command: list[str]) -> float:
    took = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began)
    return min(took)


def _is_green(python: Path) -> bool:
    """Whether the tests of an installation pass on this one."""
    version = python.parent.parent.name
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/install"]
    environment = {**os.environ, "LANEWAY_TEST_CORE_PYTHON": str(python)}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    print(f"Python {version}: {ran.stdout.strip().splitlines()[-1]}")
    if ran.returncode != 0:
        print(ran.stdout)
    return ran.returncode == 0


def _names(wheel: Path) -> list[str]:
    with ZipFile(wheel) as archive:
        return sorted(archive.namelist())


if __name__ == "__main__":
    sys.exit(main())
