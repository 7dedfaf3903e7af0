"""The code blocks of README and docs/: count them, and run them as the tests do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from scripts.site.pages import ROOT
from tests.docs.test_code_blocks import SHOW, documents, read_blocks

TEST = "tests/docs/test_code_blocks.py"


@dataclass(frozen=True)
class Snippets:
    """The numbers of code blocks that are run or parsed, and of those that say why not."""

    run: int
    skipped: int


def count() -> Snippets:
    blocks = [block for document in documents() for block in read_blocks(document)]
    tried = [block for block in blocks if block.language not in SHOW]
    skipped = sum(block.skipped for block in tried)
    return Snippets(len(tried) - skipped, skipped)


def run(arguments: list[str]) -> bool:
    """Whether every block runs as shown."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments, TEST]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0
