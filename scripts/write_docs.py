"""Write the documents that are drawn from the code."""

from __future__ import annotations

from pathlib import Path

from laneway.domain.states import render_markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"


if __name__ == "__main__":
    (DOCS / "state-machine.md").write_text(render_markdown(), "utf-8")
    print("wrote docs/state-machine.md")
