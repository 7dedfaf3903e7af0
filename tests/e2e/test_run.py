"""The figures of `make e2e` are counted as they are named."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.e2e import png
from tests.e2e.run import JOURNEYS, JourneyResults, beyond_bounds, exit_code
from tests.e2e.scale import reads

REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><error/></testcase>
<testcase name="d"><properties><property name="xss_executed" value="2"/></properties></testcase>
<testcase name="e"><skipped/></testcase>
</testsuite></testsuites>"""


def test_failures_errors_and_skips_of_journeys_are_counted(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert JourneyResults.read(tmp_path / "report.xml") == JourneyResults(4, 2, 1, 2)


def test_journeys_without_a_report_have_failed(tmp_path: Path) -> None:
    assert JourneyResults.read(tmp_path / "report.xml").failed == 1


def test_bound_of_journeys_is_not_above_the_number_that_there_are(
    pytestconfig: pytest.Config,
) -> None:
    command = [sys.executable, "-m", "pytest", "tests/e2e/journeys", "-m", "browser"]
    found = subprocess.run(
        [*command, "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sum("::" in line for line in found.stdout.splitlines()) >= JOURNEYS


def test_figure_beyond_its_bound_is_named() -> None:
    assert beyond_bounds({"screens_checked": 44, "js_gzip_kb": 250, "failed": 0}) == {}
    (line,) = beyond_bounds({"screens_checked": 43}).values()
    assert "screens_checked is 43" in line


def test_every_figure_but_a_time_fails_the_run() -> None:
    assert exit_code({"journeys": JOURNEYS, "failed": 0, "axe_violations": 0}) == 0
    assert exit_code({"journeys": JOURNEYS - 1}) == 1
    for name in ("failed", "skipped", "pytest_exit_code", "axe_violations", "xss_executed"):
        assert exit_code({name: 1}) == 1
    assert exit_code({"screens_checked": 43}) == 1
    assert exit_code({"js_gzip_kb": 251}) == 1
    assert exit_code({"slowest_query_ms": 101}) == 0, "depends on the machine"


def test_only_reads_of_the_api_are_timed() -> None:
    root = "http://127.0.0.1:8420"
    paths = [
        "/jobs?limit=50",
        "/jobs?limit=50",
        "/jobs/counts",
        "/ui/assets/a.js",
        "/events?topic=a",
    ]
    urls = [f"{root}{path}" for path in (*paths, "/jobs/7/stream", "/login?link=a", "/me")]
    assert reads(root, [*urls, "http://elsewhere/jobs"]) == {
        "/jobs?limit=50",
        "/jobs/counts",
        "/me",
    }


def test_smaller_picture_has_the_same_pixels() -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    pixels = b"".join(b"\0" + b"\x80" * 3000 for _ in range(100))
    stored = zlib.compress(pixels, 0)
    parts = [
        (b"IHDR", b"\0" * 13),
        (b"IDAT", stored[:999]),
        (b"IDAT", stored[999:]),
        (b"IEND", b""),
    ]
    picture = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
    smaller = png.shrink(picture)
    assert len(smaller) < len(picture) / 10
    at = smaller.index(b"IDAT")
    (size,) = struct.unpack_from(">I", smaller, at - 4)
    assert zlib.decompress(smaller[at + 4 : at + 4 + size]) == pixels
