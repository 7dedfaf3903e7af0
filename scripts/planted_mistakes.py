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


def run_mypy(path: Path) -> Found:
    """The errors of `mypy --strict`."""
    with tempfile.TemporaryDirectory() as cache:
        options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--no-error-summary"]
        ended = _run(cache, "mypy", *options, str(path))
    errors = _MYPY_ERROR.finditer(ended.stdout)
    found = {int(each["line"]): each["text"] for each in errors if Path(each["path"]) == path}
    _check(ended, is_clean=not found)
    return found


def run_pyright(path: Path) -> Found:
    """The errors of pyright in strict mode."""
    with tempfile.TemporaryDirectory() as project:
        settings = {"include": [str(path)], "typeCheckingMode": "strict"}
        config = Path(project, "pyrightconfig.json")
        config.write_text(json.dumps(settings))
        options = ["--project", str(config), "--pythonpath", sys.executable, "--outputjson"]
        ended = _run(project, "basedpyright", *options)
    found = {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in json.loads(ended.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    }
    _check(ended, is_clean=not found)
    return found


CHECKERS: Final = {"mypy": run_mypy, "pyright": run_pyright}


def _run(directory: str, module: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def _check(ended: subprocess.CompletedProcess[str], *, is_clean: bool) -> None:
    if ended.returncode != (0 if is_clean else 1):
        raise RuntimeError(f"{ended.args} did not run: {ended.stdout}{ended.stderr}")


def main() -> int:
    """Print `planted_mistakes_found=N of M`; 1 if a checker misses one, or reports another line."""
    marked = planted(COUNTED)
    found = {name: run(COUNTED) for name, run in CHECKERS.items()}
    both = [line for line in marked if all(line in each for each in found.values())]
    sys.stdout.write(f"planted_mistakes_found={len(both)} of {len(marked)}\n")
    is_exact = True
    for name, each in found.items():
        for line in sorted(marked.keys() ^ each.keys()):
            is_exact = False
            text = f"missed: {marked[line]}" if line in marked else f"unexpected: {each[line]}"
            sys.stdout.write(f"{COUNTED.relative_to(ROOT)}:{line}: {name} {text}\n")
    return 0 if is_exact else 1


if __name__ == "__main__":
    sys.exit(main())
