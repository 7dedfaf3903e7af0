"""python -m scripts.integrations [NAME ...] [--python ENVIRONMENT]

Run the example of every integration: install its packages and Laneway's wheel into an environment
of that name below .cache/integrations, start the example there and use it. Prints the number of
integrations that ran, and counts of tests; also in bench/latest/integrations.json. Exits with 1
unless all of them ran.
`--python` prints the oldest Python of an environment, for its lock.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from scripts.core_install import build, find_python

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".cache" / "integrations"
LOCKS = ROOT / "requirements" / "integrations"
FIGURES = ROOT / "bench" / "latest" / "integrations.json"
# The environments of each integration, by the names of their locks.
INTEGRATIONS = {
    "django": ("django-5", "django-6"),
    "fastapi": ("fastapi",),
    "flask": ("flask",),
    "notebooks": ("notebooks",),
    "opentelemetry": ("opentelemetry",),
    "sentry": ("sentry",),
    "sqlalchemy": ("sqlalchemy",),
}
OLDEST_PYTHON = {"django-6": "3.12"}
_NEWER = ("3.12", "3.13", "3.14")


def oldest_python(environment: str) -> str:
    """The oldest Python that an environment works with."""
    return OLDEST_PYTHON.get(environment, "3.11")


def python_of(environment: str) -> Path:
    """The interpreter of an environment, once it is installed."""
    return HOME / environment / "bin" / "python"


def install(environment: str, wheel: Path) -> None:
    """Install the lock and the wheel; nothing is done for what is installed already."""
    inside, lock = python_of(environment), LOCKS / f"{environment}.txt"
    stamp, wanted = HOME / environment / ".installed", [_digest(lock), _digest(wheel)]
    found = stamp.read_text("utf-8").split() if stamp.exists() else []
    if found == wanted:
        return
    # Output of pip goes to stderr: the figures are all that stdout has.
    pip = [sys.executable, "-m", "pip", "--python", str(inside), "install", "-qq"]
    pip += ["--disable-pip-version-check", "--root-user-action=ignore"]
    if found[:1] != wanted[:1]:
        _note(f"installing requirements/integrations/{lock.name}")
        _run(
            [
                _find_python(environment),
                "-m",
                "venv",
                "--without-pip",
                "--clear",
                str(inside.parents[1]),
            ]
        )
        _run([*pip, "--require-hashes", "-r", str(lock)])
    _run([*pip, "--no-deps", "--no-index", "--force-reinstall", str(wheel)])
    stamp.write_text(" ".join(wanted), "utf-8")


def run_tests(name: str) -> dict[str, int]:
    """Run the tests of an integration; count those that passed, failed and were skipped."""
    test = f"tests/integrations/examples/test_{name}.py"
    with tempfile.TemporaryDirectory(prefix="laneway-integrations-") as folder:
        report = Path(folder) / "report.xml"
        pytest = [sys.executable, "-m", "pytest", test, "-m", "integration", "-p", "no:randomly"]
        done = subprocess.run(
            [*pytest, f"--junit-xml={report}"], cwd=ROOT, check=False, stdout=sys.stderr
        )
        # Written by our own pytest a moment ago.
        tree = ElementTree.parse(report) if report.exists() else None  # noqa: S314
    cases = [{part.tag for part in each} for each in tree.iter("testcase")] if tree else []
    failed = sum(bool(each & {"failure", "error"}) for each in cases)
    skipped = sum("skipped" in each for each in cases)
    if done.returncode and not failed:
        failed = 1  # no test, or none that pytest could run
    return {"passed": len(cases) - failed - skipped, "failed": failed, "skipped": skipped}


def run(names: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="laneway-wheel-") as folder:
        # The examples need no dashboard, which takes a minute to build.
        os.environ["LANEWAY_SKIP_WEB"] = "1"
        wheel = build("wheel", Path(folder))
        for environment in (each for name in names for each in INTEGRATIONS[name]):
            install(environment, wheel)
    results = {name: run_tests(name) for name in names}
    ran = [
        n for n, each in results.items() if each["passed"] and not each["failed"] + each["skipped"]
    ]
    figures = {
        "integrations_run": len(ran),
        **{
            key: sum(each[key] for each in results.values())
            for key in ("passed", "failed", "skipped")
        },
    }
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    for figure, value in figures.items():
        print(f"[{figure}] {value}")
    for name in sorted(results.keys() - set(ran)):
        _note(f"{name}: {results[name]}")
    return int(len(ran) < len(names))


def _find_python(environment: str) -> str:
    oldest = oldest_python(environment)
    if sys.version_info[:2] >= tuple(map(int, oldest.split("."))):
        return sys.executable
    found = next(filter(None, (find_python(each) for each in _NEWER)), None)
    if found is None:
        raise SystemExit(
            f"{environment} needs Python {oldest} or newer: install one, and put it on PATH"
        )
    return found


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the example of every integration.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(INTEGRATIONS))
    parser.add_argument("--python", metavar="ENVIRONMENT", help="print its oldest Python")
    given = parser.parse_args()
    if given.python:
        print(oldest_python(given.python))
        return 0
    if unknown := set(given.names) - INTEGRATIONS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(INTEGRATIONS)}")
    return run(given.names or list(INTEGRATIONS))


if __name__ == "__main__":
    sys.exit(main())
