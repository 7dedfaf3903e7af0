"""Print the extras of pyproject.toml that users install, one per line."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def extras() -> list[str]:
    """Return all extras except `dev`."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name != "dev"]


if __name__ == "__main__":
    print("\n".join(extras()))
