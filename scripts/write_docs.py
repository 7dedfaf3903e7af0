"""Write the documents that are drawn from the code; tests hold them equal."""

from __future__ import annotations

from pathlib import Path

from laneway import metrics
from laneway.api.app import make_app
from laneway.api.description import describe
from laneway.config import Settings
from laneway.domain.states import render_markdown
from laneway.store.database import Database

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


HTTP_HEAD = """# HTTP

Every route of [the server](../howto/server.md). `GET /openapi.json` of a running one says the same
with all fields, for programs. Lists take `limit` (at most 200) and `cursor`; POST routes
take an `Idempotency-Key`, but for logging in and out and for new tokens.
`/mcp` is no route of it but a protocol of its own,
[for assistants](../howto/mcp.md).

| method and path | |
| --- | --- |
"""


def render_http() -> str:
    """docs/reference/http.md."""
    settings = Settings.load(database_url="postgresql://nowhere")
    document = describe(make_app(settings, Database("", settings)))
    rows = [
        f"| {method.upper()} `{path}` | {' '.join(operation['description'].split())} |"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]
    return HTTP_HEAD + "\n".join(rows) + "\n"


METRICS_HEAD = """# Metrics

What Prometheus reads ([how to](../howto/observability.md)). Counters are of one process since it
began.

"""


def render_metrics() -> str:
    """docs/reference/metrics.md."""
    parts = []
    for title, families in (
        ("The cluster, told by every server", metrics.OF_THE_CLUSTER),
        (
            "Workers, told by `--metrics-port` and by a server around one",
            metrics.OF_WORKERS,
        ),
        ("Servers", metrics.OF_SERVERS),
        ("Every process", metrics.OF_PROCESSES),
    ):
        rows = [
            f"| `{one.name}` | {one.kind} | {', '.join(f'`{name}`' for name in one.labels)}"
            f" | {one.help} |"
            for one in families
        ]
        head = f"## {title}\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n"
        parts.append(head + "\n".join(rows) + "\n")
    return METRICS_HEAD + "\n".join(parts)


DRAWN = {
    "state-machine.md": render_markdown,
    "reference/http.md": render_http,
    "reference/metrics.md": render_metrics,
    "reference/settings.md": render_settings,
}


if __name__ == "__main__":
    for name, render in DRAWN.items():
        (DOCS / name).write_text(render(), "utf-8")
        print(f"wrote docs/{name}")
