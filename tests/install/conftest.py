"""The core as users install it: the built wheel with its packages and no extra."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts.core_install import build, link_site

# `make first-hour` sets it: the interpreter of a fresh environment.
INSTALLED = "LANEWAY_TEST_CORE_PYTHON"
_FOREIGN = ("LANEWAY_", "PG", "DATABASE_URL", "PYTHON")

APP = """
from laneway import Context, Laneway

lw = Laneway()

@lw.handler("add")
async def add(ctx: Context, a: int, b: int) -> int:
    return a + b
"""


@dataclass(frozen=True)
class Core:
    """Runs Python and the command line with the core only."""

    interpreter: tuple[str, ...]
    site: Path
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def python(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        return subprocess.run(
            [*self.interpreter, *args],
            cwd=self.folder,
            env={**kept, **self.env, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def laneway(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "laneway", *args, **env)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def core_site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if installed := os.environ.get(INSTALLED):
        [site] = Path(installed).parents[1].glob("lib/python*/site-packages")
        yield site
    else:
        yield link_site(wheel, tmp_path_factory.mktemp("core") / "site")


@pytest.fixture
def core(core_site: Path, tmp_path: Path) -> Core:
    (tmp_path / "app.py").write_text(APP)
    if installed := os.environ.get(INSTALLED):
        return Core((installed,), core_site, tmp_path)
    # Without the packages of this environment, which -S hides.
    return Core((sys.executable, "-S"), core_site, tmp_path, {"PYTHONPATH": str(core_site)})
