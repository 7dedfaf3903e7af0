"""Throughput of plain jobs beside the code before flows, in turns on one server."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import drain
from bench.figures import Figures, alternate
from bench.scale import Scale
from bench.server import Database, Server
from bench.workers import ROOT, Workers, environment

# The last commit without flows.
COMMIT = "0f2428dd"


def unpack(place: Path) -> None:
    """Write the files of that commit to a directory."""
    archive = subprocess.run(
        ["git", "archive", COMMIT, "src", "bench"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True)


def _migrated_before(server: Server, root: Path) -> Database:
    """A new database with the tables of that commit."""
    database = server.empty_database("bench_before")
    subprocess.run(
        [sys.executable, "-m", "laneway", "db", "migrate"],
        cwd=root,
        env=environment(database, root),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return database


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    with tempfile.TemporaryDirectory(prefix="laneway-bench-before-") as home:
        root = Path(home)
        unpack(root)
        before = _migrated_before(server, root)
        now = server.database("bench_now")
        old_workers = partial(Workers, root=root)
        kinds: dict[str, Callable[[], float]] = {
            "before": lambda: drain.workers(before, scale.drain, make_workers=old_workers),
            "now": lambda: drain.workers(now, scale.drain),
        }
        rates = alternate("plain", kinds, scale.runs, reverses=True)
        figures.ratio("plain_vs_before", rates["now"], rates["before"])
        server.drop(before)
        server.drop(now)
