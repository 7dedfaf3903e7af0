"""The figures of `make e2e` are counted as they are named."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from tests.e2e import png
from tests.e2e.run import JourneyResults, beyond_bounds
from tests.e2e.scale import slowest_requests

REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><error/></testcase>
<testcase name="d"><properties><property name="xss_executed" value="2"/></properties></testcase>
</testsuite></testsuites>"""


def test_failures_and_errors_of_journeys_are_counted(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert JourneyResults.read(tmp_path / "report.xml") == JourneyResults(4, 2, 2)


def test_journeys_without_a_report_have_failed(tmp_path: Path) -> None:
    assert JourneyResults.read(tmp_path / "report.xml").failed == 1


def test_figure_beyond_its_bound_is_named() -> None:
    assert beyond_bounds({"screens_checked": 44, "js_gzip_kb": 250, "failed": 0}) == []
    (line,) = beyond_bounds({"screens_checked": 43})
    assert "screens_checked is 43" in line


def test_slowest_read_of_each_path_counts() -> None:
    lines = [
        "2026 INFO GET /jobs 200 in 12 ms request_id=a",
        "2026 INFO GET /jobs 200 in 31 ms request_id=b",
        "2026 INFO GET /events 200 in 60000 ms request_id=c",
        "2026 INFO GET /ui/assets/a.js 200 in 700 ms request_id=d",
        "2026 INFO POST /login 303 in 900 ms request_id=e",
    ]
    assert slowest_requests(lines) == {"/jobs": 31}


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
