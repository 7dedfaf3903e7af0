"""Measure what a new user meets first: `make first-hour`.

Builds the wheel and the sdist, installs the core without extras into fresh environments and runs
tests/install in each. Prints the figures with their bounds; bench/latest/first_hour.json keeps
them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from scripts.core_install import ROOT, build, find_python, make_venv, rebuild, size_of

FIGURES: Final = ROOT / "bench" / "latest" / "first_hour.json"
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
PLANTED: Final = 8
# Figure and bound: the least for the first, the greatest for the others.
BOUNDS: Final = {
    "planted_mistakes_found": PLANTED,
    "core_mb": 60,
    "core_packages": 26,
    "import_s": 0.25,
    "help_s": 0.2,
}
RUNS: Final = 15


def main() -> int:
    figures: dict[str, float] = {}
    missed: list[str] = []
    figures["planted_mistakes_found"] = planted_mistakes()
    with tempfile.TemporaryDirectory(prefix="laneway-first-hour-") as home:
        missed += installations(Path(home), figures)
    for name, bound in BOUNDS.items():
        value = figures[name]
        is_met = value >= bound if name == "planted_mistakes_found" else value <= bound
        print(f"{name}={value:g}")
        if not is_met:
            missed.append(f"{name} {value:g}, bound {bound:g}")
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps({**figures, "missed": missed}, indent=2) + "\n", "utf-8")
    print("missed: " + ("; ".join(missed) if missed else "nothing"))
    print(f"Kept in {FIGURES.relative_to(ROOT)}")
    return 0


def planted_mistakes() -> int:
    """Count the planted typing mistakes that both type checkers find."""
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
        return 0
    return int(found[1])


def installations(home: Path, figures: dict[str, float]) -> list[str]:
    """Install on every version of Python that this machine has; measure the first."""
    wheel, sdist = build("wheel", home / "wheel"), build("sdist", home / "sdist")
    missed = [] if _names(rebuild(sdist, home / "rebuilt")) == _names(wheel) else ["sdist"]
    for version in VERSIONS:
        base = find_python(version)
        if base is None:
            print(f"Python {version}: not on this machine")
            missed.append(f"Python {version} is not on this machine")
            continue
        python = make_venv(base, wheel, home / version)
        if "core_mb" not in figures:
            measure(python, figures)
        if not _is_green(python):
            missed.append(f"tests/install on Python {version}")
    return missed


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
