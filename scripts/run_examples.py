"""python -m scripts.run_examples [NAME…]

Play the story of each example on an embedded PostgreSQL, and run the commands of its README.
Prints the number of examples that ran; exits with 1 if one fails or did not run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))


class Results:
    """Collects the outcome of every test, by the example that it belongs to."""

    def __init__(self) -> None:
        self.passed: dict[str, int] = {}
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call":
            for name in EXAMPLES:
                if f"/{name}/" in report.nodeid or report.nodeid.endswith(f"[{name}]"):
                    self.passed[name] = self.passed.get(name, 0) + 1


def main(wanted: list[str]) -> int:
    if unknown := set(wanted) - set(EXAMPLES):
        print(f"no example {', '.join(sorted(unknown))}; there are {', '.join(EXAMPLES)}")
        return 2
    names = wanted or EXAMPLES
    stories = [f"examples/{name}/test_story.py" for name in names]
    readmes = [f"examples/test_readmes.py::test_readme_runs_as_shown[{name}]" for name in names]
    results = Results()
    code = pytest.main(["-q", "-x", *stories, *readmes], plugins=[results])
    # One story and one README each: a test that pytest no longer finds fails the run.
    ran = [name for name in names if results.passed.get(name) == 2]
    print(f"[examples_run] {len(ran)}")
    for name in sorted(set(names) - set(ran)):
        print(f"{name} did not pass")
    return int(code != 0 or len(ran) != len(names) or bool(results.failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
