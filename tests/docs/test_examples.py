"""Every example in one file runs unchanged and prints its documented output.

`make examples` plays the others, which are folders with several programs.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted({*FOLDER.glob("*.py")} - {FOLDER / "conftest.py", *FOLDER.glob("test_*.py")})
PATIENCE_S = 120.0


def promised(example: Path) -> str:
    """The last indented part of its docstring, after the word `prints:`."""
    text = ast.get_docstring(ast.parse(example.read_text("utf-8"))) or ""
    found = re.search(r"prints:\n\n((?:    .*\n?)+)\Z", text)
    assert found is not None, f"{example.name} does not say what it prints"
    return dedent(found[1])


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_prints_its_documented_output(example: Path, dsn: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(example)],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn, "PYTHONIOENCODING": "utf-8"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == promised(example).strip(), ran.stderr
