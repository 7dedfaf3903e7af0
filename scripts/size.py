"""Prints how large the source is, and how plain: `make size`."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Final

from scripts.word_lint import ROOT, files, in_file

LONGEST_MODULE: Final = 400
# One is the public face of the other.
FACES: Final = frozenset({"Client", "Event", "Lane", "Limit"})
# Django finds the class of each management command by this name.
FIXED: Final = frozenset({"Command"})
# Files that spell out each of these columns, migrations aside.
LANE_COLUMNS: Final = ("stale_timeout_minutes", "poll_interval_ms")


def class_names(path: Path) -> list[str]:
    """The classes of a module's top level."""
    tree = ast.parse(path.read_text("utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def main() -> None:
    """Measure src/laneway and print one figure per line."""
    sources = [path for path in files(["src"]) if path.suffix in (".py", ".sql")]
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in sources}
    modules = [path for path in sources if path.suffix == ".py" and path.name != "__init__.py"]
    classes = Counter(name for path in modules for name in class_names(path))
    touched = [
        path
        for path in sources
        if "migrations" not in path.parts
        and all(column in path.read_text("utf-8") for column in LANE_COLUMNS)
    ]
    figures = {
        "src_lines": sum(lengths.values()),
        "median_module": round(median(lengths[path] for path in modules)),
        "modules_over_400": sum(lengths[path] > LONGEST_MODULE for path in modules),
        "duplicate_class_names": sum(
            number > 1 and name not in FACES | FIXED for name, number in classes.items()
        ),
        "banned_words": sum(len(in_file(path)) for path in sources),
        "files_touched_by_a_lane_column": len(touched),
    }
    for name, value in figures.items():
        sys.stdout.write(f"{name}={value}\n")
    if "--files" in sys.argv:
        for path in touched:
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
