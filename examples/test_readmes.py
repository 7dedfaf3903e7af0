"""Every code block in the READMEs of the examples runs as shown, or states why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from examples.conftest import Programs
from tests.docs.test_code_blocks import document_run, fork_server, read_blocks

__all__ = ["fork_server"]

READMES = sorted(Path(__file__).parent.glob("*/README.md"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_readme_runs_as_shown(
    readme: Path, programs: Programs, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    forks: Path = request.getfixturevalue("fork_server")
    home = tmp_path / "readme"
    home.mkdir()
    with document_run(home, forks, programs.dsn, seconds=300) as run:
        run.environment["LANEWAY_SERVER_PORT"] = "0"  # the usual one may be taken
        ignored = shutil.ignore_patterns("__pycache__", "node_modules", ".laneway")
        shutil.copytree(readme.parent, run.directory, dirs_exist_ok=True, ignore=ignored)
        for block in read_blocks(readme):
            if not block.skipped:
                run.run(block)
