"""Write the documents that are drawn from the code; tests hold them equal."""

from __future__ import annotations

from pathlib import Path

from laneway.config import Settings
from laneway.domain.states import render_markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"

SETTINGS_HEAD = """# Settings

Each setting is a variable `LANEWAY_<NAME>`, a key of `laneway.toml` in the working directory (or of
the file that `LANEWAY_CONFIG` names), or an argument of `Laneway(...)`. Arguments win over
variables, variables over the file. Without `LANEWAY_DATABASE_URL`, `DATABASE_URL` is used, then
libpq's own variables if `PGHOST` or `PGSERVICE` is set, then embedded PostgreSQL.

| setting | default | meaning |
| --- | --- | --- |
"""


def render_settings() -> str:
    """docs/reference/settings.md."""
    rows = []
    for name, field in Settings.model_fields.items():
        rows.append(f"| `{name}` | {_shown(field.default)} | {field.description} |")
    return SETTINGS_HEAD + "\n".join(rows) + "\n"


def _shown(default: object) -> str:
    if default in (None, ()):
        return ""
    return f"`{default:.3g}`" if isinstance(default, float) else f"`{default}`"


DRAWN = {
    "state-machine.md": render_markdown,
    "reference/settings.md": render_settings,
}


if __name__ == "__main__":
    for name, render in DRAWN.items():
        (DOCS / name).write_text(render(), "utf-8")
        print(f"wrote docs/{name}")
