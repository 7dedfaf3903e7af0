"""python -m tests.e2e.run [--quick] [--only journeys|screens|scale]

Walk the dashboard's journeys in a real browser, check every screen with axe-core and measure it
with millions of jobs. Prints the figures as one JSON object and names those beyond their bounds.
Exits with 1 if one of them is beyond its bound; not for times, which depend on the machine.
`--quick` leaves the millions out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from bench.server import Server
from tests.e2e import sample_data, scale, screens
from tests.e2e.browser import run_chromium, visit
from tests.e2e.processes import ROOT
from tests.e2e.site import run_site

PARTS = ("journeys", "screens", "scale")
FIGURES = ROOT / "bench/latest/e2e.json"
XSS_EXECUTED = "xss_executed"
# All that there were when this was written: a journey that pytest no longer finds fails the run.
JOURNEYS = 62
# The least value, and the greatest.
BOUNDS: dict[str, tuple[float, float]] = {
    "journeys": (JOURNEYS, 1000),
    "failed": (0, 0),
    "skipped": (0, 0),
    "pytest_exit_code": (0, 0),
    "axe_violations": (0, 0),
    "screens_checked": (44, 1000),
    "other_findings": (0, 0),
    "xss_executed": (0, 0),
    "js_gzip_kb": (0, 250),
    "slowest_first_paint_ms": (0, 1000),
    "slowest_query_ms": (0, 100),
}
Figures = dict[str, float]


@dataclass(frozen=True)
class JourneyResults:
    """The counts of one run of the journeys; `journeys` are those that ran."""

    journeys: int
    failed: int
    skipped: int
    xss_executed: int

    @classmethod
    def read(cls, report: Path) -> JourneyResults:
        """The results in pytest's report; no report is one failure."""
        if not report.exists():
            return cls(0, 1, 0, 0)
        # Written by our own pytest a moment ago.
        tree = ElementTree.parse(report)  # noqa: S314
        cases = list(tree.iter("testcase"))
        outcomes = [{part.tag for part in each} for each in cases]
        failed = sum(bool(each & {"failure", "error"}) for each in outcomes)
        skipped = sum("skipped" in each for each in outcomes)
        executed = [
            int(each.get("value", "0"))
            for each in tree.iter("property")
            if each.get("name") == XSS_EXECUTED
        ]
        return cls(len(cases) - skipped, failed, skipped, sum(executed))


def run_journeys() -> Figures:
    with tempfile.TemporaryDirectory(prefix="laneway-e2e-report-") as folder:
        report = Path(folder) / "report.xml"
        command = ["-m", "pytest", "tests/e2e/journeys", "-m", "browser", "-n", "2"]
        split = ["--dist", "loadfile", "--no-loadscope-reorder", f"--junit-xml={report}"]
        done = subprocess.run([sys.executable, *command, *split], cwd=ROOT, check=False)
        results = JourneyResults.read(report)
    return {
        "journeys": results.journeys,
        "failed": results.failed,
        "skipped": results.skipped,
        "pytest_exit_code": done.returncode,
        "xss_executed": results.xss_executed,
    }


def check_screens() -> Figures:
    with Server() as server:
        database = server.database("screens")
        database.close()
        sample_data.fill_history(database.dsn)
        with run_site(database.dsn) as site, run_chromium() as browser:
            made = sample_data.fill_site(site)
            found = screens.check(site, browser, screens.screens(made))
            with visit(browser, site.url) as window:
                window.sign_in(site.link("platform_admin"))
                size = scale.js_gzip_kb(window)
    for each in (*found.axe, *found.others):
        print(each)
    print(f"pictures: {screens.PICTURES.relative_to(ROOT)}")
    return {
        "axe_violations": len(found.axe),
        "screens_checked": found.checked,
        "other_findings": len(found.others),
        "js_gzip_kb": size,
    }


def measure_scale() -> Figures:
    with Server() as server:
        database = server.database("scale")
        database.close()
        began = time.monotonic()
        sample_data.fill_history(database.dsn, scale.ENDED, scale.WAITING)
        print(f"loaded {scale.ENDED + scale.WAITING:,} jobs in {time.monotonic() - began:.0f} s")
        with run_site(database.dsn) as site, run_chromium() as browser:
            made = sample_data.fill_site(site)
            timings = scale.measure(site, browser, screens.screens(made))
    for name, painted in timings.painted.items():
        print(f"{name}: first paint {painted:.0f} ms, content {timings.shown[name]:.0f} ms")
    for path, took in sorted(timings.requests.items(), key=lambda each: -each[1])[:10]:
        print(f"GET {path}: {took:.0f} ms")
    return {
        "slowest_first_paint_ms": round(timings.slowest_first_paint_ms),
        "slowest_content_ms": round(max(timings.shown.values())),
        "slowest_query_ms": round(timings.slowest_query_ms),
    }


def beyond_bounds(figures: Figures) -> dict[str, str]:
    """A sentence for each figure that misses its bound, by its name."""
    return {
        name: f"beyond its bound: {name} is {figures[name]:g}, not within {least:g} to {most:g}"
        for name, (least, most) in BOUNDS.items()
        if name in figures and not least <= figures[name] <= most
    }


def exit_code(figures: Figures) -> int:
    return 1 if any(not name.endswith("_ms") for name in beyond_bounds(figures)) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.run")
    parser.add_argument("--quick", action="store_true", help="leave the millions of jobs out")
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    parts = [options.only] if options.only else PARTS[: 2 if options.quick else 3]
    run = {"journeys": run_journeys, "screens": check_screens, "scale": measure_scale}
    figures: Figures = {}
    for part in parts:
        began = time.monotonic()
        figures |= run[part]()
        print(f"{part}: {time.monotonic() - began:.0f} s", flush=True)
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    print("\n".join(beyond_bounds(figures).values()))
    print(json.dumps(figures))
    return exit_code(figures)


if __name__ == "__main__":
    sys.exit(main())
