"""Measure the server and print the missed targets; a whole run is kept in bench/latest/api.json."""

from __future__ import annotations

import sys

from bench.api import checks, post, reads, responsive, status, streams
from bench.figures import LATEST
from bench.run import Sections, main

SECTIONS: Sections = {
    "post": (post.measure, ("post_vs_bare_insert",)),
    "streams": (
        streams.measure,
        ("cross_replica_event_p50_ms", "sse_1000_rss_mb", "sse_1000_start_p50_vs_none"),
    ),
    "responsive": (
        responsive.measure,
        ("http_p99_with_cpu_process_vs_idle", "http_p99_with_cpu_thread_vs_idle"),
    ),
    "status": (status.measure, ("status_ms_at_1m",)),
    "reads": (reads.measure, ("slowest_read_ms", "reads")),
    "checks": (checks.measure, ("fuzz_cases", "fuzz_5xx", "authz_cells", "authz_leaks")),
}

if __name__ == "__main__":
    sys.exit(main(SECTIONS, LATEST.with_name("api.json")))
