"""Builds the wheel and installs it with the core's packages only, as `pip install laneway` does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from shutil import which
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
CORE_LOCK = ROOT / "requirements" / "core.txt"


def build(target: str, into: Path) -> Path:
    """Build the `wheel` or the `sdist` and return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    _run(command)
    [built] = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def rebuild(sdist: Path, into: Path) -> Path:
    """Build a wheel from an sdist, as pip does where no wheel fits."""
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(into)]
    _run([sys.executable, "-m", "pip", "wheel", "-qq", *options, str(sdist)])
    [built] = into.glob("*.whl")
    return built


def make_venv(python: str, wheel: Path, into: Path) -> Path:
    """Install the wheel and the core lock into a fresh environment; return its interpreter."""
    _run([python, "-m", "venv", "--without-pip", str(into)])
    inside = into / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(inside)]
    install = [*pip, "install", "-qq", "--disable-pip-version-check", "--root-user-action=ignore"]
    _run([*install, "--require-hashes", "-r", str(CORE_LOCK)])
    _run([*install, "--no-deps", "--no-index", str(wheel)])
    _run([*pip, "check"])
    return inside


def link_site(wheel: Path, into: Path) -> Path:
    """Unpack the wheel beside links to the core's packages of this environment: needs no network.

    Run a program with it as `python -S` with PYTHONPATH.
    """
    with ZipFile(wheel) as archive:
        archive.extractall(into)
    for name in core_names():
        for top in _top_level(name):
            (into / top.name).symlink_to(top)
    return into


def core_names() -> list[str]:
    """The packages of the core lock that this platform has."""
    pinned = re.findall(r"^([a-z0-9][a-z0-9._-]*)", CORE_LOCK.read_text("utf-8"), re.MULTILINE)
    return [name for name in pinned if _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:  # for another platform
        return False
    return True


def _top_level(name: str) -> Iterator[Path]:
    found = metadata.distribution(name)
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "bin")}
    for top in sorted(tops - {"__pycache__"}):
        yield Path(str(found.locate_file(top)))


def size_of(site: Path) -> int:
    """The bytes of all files in a directory of packages."""
    files = (Path(parent, name) for parent, _, names in os.walk(site) for name in names)
    return sum(file.stat().st_size for file in files)


def find_python(version: str) -> str | None:
    """An interpreter of this version, such as 3.13, on PATH or from pyenv."""
    name = f"python{version}"
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(home.glob(f"versions/{version}.*/bin/{name}"))
    for candidate in (which(name), *map(str, reversed(found))):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def _run(command: list[str]) -> None:
    # Bytecode is compiled at the installation, and every start reads it.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)}:\n{ran.stdout}{ran.stderr}")
