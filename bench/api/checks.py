"""Figures from tests: generated requests to every route, and every role at every route."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench.figures import LATEST, Figures
from bench.scale import Scale, log
from bench.server import Server
from bench.workers import ROOT


def _run(*command: str) -> None:
    subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "LANEWAY_FIGURES": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    _run("tests.api.fuzz", *([] if scale.fuzz_each is None else [str(scale.fuzz_each)]))
    _run("pytest", "-q", "tests/api/test_matrix.py")
    found = {
        **json.loads(LATEST.with_name("fuzz.json").read_text()),
        **json.loads(LATEST.with_name("authz.json").read_text()),
    }
    log(f"checks: {found}")
    figures.put(**{name: found[name] for name in found if name.startswith(("fuzz_", "authz_"))})
