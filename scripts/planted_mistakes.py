"""Counts the planted mistakes that both mypy and pyright find.

    python -m scripts.planted_mistakes

Both check the files of tests/types as a user's strict project would.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FILES: Final = ROOT / "tests" / "types"
COUNTED: Final = FILES / "planted_jobs.py"
_MISTAKE: Final = "  # mistake: "
_MYPY_ERROR: Final = re.compile(r"^(?P<path>.+?):(?P<line>\d+): error: (?P<text>.*)$", re.MULTILINE)

# Messages by line.
Found = dict[int, str]


def planted(path: Path) -> Found:
    """The marked lines of a file, with what is wrong in each."""
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    return {number: line.split(_MISTAKE)[1] for number, line in lines if _MISTAKE in line}


def run_mypy(*paths: Path) -> dict[Path, Found]:
    """The errors of `mypy --strict` in each file."""
    with tempfile.TemporaryDirectory() as cache:
        options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--no-error-summary"]
        ended = _run(cache, "mypy", *options, *map(str, paths))
    errors = _MYPY_ERROR.finditer(ended.stdout)
    return _by_file(
        ended, paths, [(each["path"], int(each["line"]), each["text"]) for each in errors]
    )


def run_pyright(*paths: Path) -> dict[Path, Found]:
    """The errors of pyright in strict mode, in each file."""
    with tempfile.TemporaryDirectory() as project:
        settings = {"include": [str(path) for path in paths], "typeCheckingMode": "strict"}
        config = Path(project, "pyrightconfig.json")
        config.write_text(json.dumps(settings))
        options = ["--project", str(config), "--pythonpath", sys.executable, "--outputjson"]
        ended = _run(project, "basedpyright", *options)
    errors = [
        (each["file"], each["range"]["start"]["line"] + 1, each["message"])
        for each in json.loads(ended.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    return _by_file(ended, paths, errors)


CHECKERS: Final = {"mypy": run_mypy, "pyright": run_pyright}


def _run(directory: str, module: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def _by_file(
    ended: subprocess.CompletedProcess[str],
    paths: tuple[Path, ...],
    errors: list[tuple[str, int, str]],
) -> dict[Path, Found]:
    found: dict[Path, Found] = {path: {} for path in paths}
    for name, line, text in errors:
        if Path(name) in found:
            found[Path(name)][line] = text
    if ended.returncode != (1 if any(found.values()) else 0):
        raise RuntimeError(f"{ended.args} did not run: {ended.stdout}{ended.stderr}")
    return found


def summary(found: Mapping[str, Found]) -> list[str]:
    """`planted_mistakes_found=N of M`, and a line per mistake that a checker misses or adds."""
    marked = planted(COUNTED)
    both = [line for line in marked if all(line in each for each in found.values())]
    lines = [f"planted_mistakes_found={len(both)} of {len(marked)}"]
    for name, each in found.items():
        for line in sorted(marked.keys() ^ each.keys()):
            text = f"missed: {marked[line]}" if line in marked else f"unexpected: {each[line]}"
            lines.append(f"{COUNTED.relative_to(ROOT)}:{line}: {name} {text}")
    return lines


def main() -> int:
    """Print the summary; 1 if a checker misses a mistake, or reports another line."""
    lines = summary({name: run(COUNTED)[COUNTED] for name, run in CHECKERS.items()})
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if len(lines) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
