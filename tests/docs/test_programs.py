"""The programs that only long targets run still load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _is_foreign(path: Path) -> bool:
    """Programs that run in the environment of another job system import its packages."""
    return path.match("bench/peers/systems/*/program.py") and path.parent.name != "laneway"


@pytest.mark.parametrize("package", ["bench", "tests/abuse"])
def test_every_module_of_a_long_target_can_be_imported(package: str) -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.name.startswith(("test_", "conftest", "__")) and not _is_foreign(path)
    ]
    assert modules
    # In another process: these modules declare handlers and change signal handlers.
    program = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", program, *modules], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_program_of_another_job_system_compiles() -> None:
    foreign = [path for path in (ROOT / "bench/peers/systems").rglob("*.py") if _is_foreign(path)]
    assert foreign
    for path in foreign:
        compile(path.read_text(), str(path), "exec")
