"""Generate the documents that come from the code; a test checks that they are current."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laneway.api.app import make_app
from laneway.api.routes.description import describe
from laneway.config.settings import Settings
from laneway.domain.states import render_markdown
from laneway.observability import metrics
from laneway.store.database import Database
from scripts.error_reference import render_errors

DOCS = Path(__file__).resolve().parent.parent / "docs"

SETTINGS_HEAD = """# Settings

Each setting is a variable `LANEWAY_<NAME>`, a key of `laneway.toml` in the
[project's directory](#the-project) (or of the file that `LANEWAY_CONFIG` names), or an argument of
`Laneway(...)`. Arguments override variables, and variables override the file. Without
`LANEWAY_DATABASE_URL`, Laneway uses `DATABASE_URL`, then libpq's variables if `PGHOST` or
`PGSERVICE` is set, then embedded PostgreSQL.
Times are in seconds, unless the name says otherwise (`_ms`); sizes are in bytes.

| setting | default | meaning |
| --- | --- | --- |
"""


SETTINGS_TAIL = """
## The project

The project's directory is the nearest one, from the working directory upwards, with a
`laneway.toml`, a `pyproject.toml`, a `.git` or a `.laneway`; without any, the working directory. A
`.laneway` that belongs to another account does not count. The search ends below your home
directory, below directories that everyone can write and below those of other accounts. The place
of the application's modules does not matter: commands without an application, such as `laneway jobs
ls`, find the same database. So start all programs of a project in its directory or below.

A `laneway.toml` of another account, or in its directory, is refused, because it can name programs
to run; root's is accepted. `LANEWAY_CONFIG` accepts any file. Root in a container that mounts a
checkout of another account sets it, or runs as that account (`docker run --user`).

## Embedded PostgreSQL

For development (`pip install 'laneway[embedded]'`). Each project has its own database. `N` is the
major version; `laneway db path` and `laneway db status` print the directory.

| setting | data directory |
| --- | --- |
| none | `.laneway/postgres-N` in the project; git ignores `.laneway` |
| `LANEWAY_EMBEDDED=shared` | `$XDG_DATA_HOME/laneway/postgres-N` (`~/.local/share/laneway/…`) |
| `LANEWAY_DATA_DIR` | that directory |

For root the shared directory is usually `/var/lib/laneway`. Earlier versions used it for all
projects. Workers, servers and other programs that use `Laneway()` log the directory at each start,
commands only when they create the database.

If the project cannot be written, if everyone can write it or if it belongs to another account,
the data is in `projects/NAME-DIGEST/postgres-N` of the shared directory. A `.laneway` that is a
symbolic link, belongs to another account or can be written by others is refused. For root,
PostgreSQL runs as another account; if that cannot enter the project, such as one in root's home,
the same applies. If the path is too long for a socket, the socket is in `/tmp`.

The first process that needs it starts PostgreSQL. It stops when the last process that uses it has
ended, also by a crash. The data stays until you run `laneway db reset`.
"""


def render_settings() -> str:
    """docs/reference/settings.md."""
    rows = []
    for name, field in Settings.model_fields.items():
        rows.append(f"| `{name}` | {_shown(field.default)} | {field.description} |")
    return SETTINGS_HEAD + "\n".join(rows) + "\n" + SETTINGS_TAIL


def _shown(default: object) -> str:
    if default in (None, ()):
        return ""
    if isinstance(default, float):
        return f"`{default:.0f}`" if default >= 1000 else f"`{default:.3g}`"
    return f"`{default}`"


HTTP_HEAD = """# HTTP

Every route of [the server](../howto/server.md). [openapi.json](openapi.json) describes them with
all fields, as `GET /openapi.json` of a running server does; generate types and clients from it.
Unknown query parameters are refused, except by the few routes that need no token. Lists take
`limit` (at most 200) and `cursor`. POST routes take an `Idempotency-Key`, except login, logout and
new tokens. `/mcp` is not listed: it serves a separate protocol, [for assistants](../howto/mcp.md).

| method and path | |
| --- | --- |
"""


def render_http() -> str:
    """docs/reference/http.md."""
    document = _described()
    rows = [
        f"| {method.upper()} `{path}` | {' '.join(operation['description'].split())} |"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]
    return HTTP_HEAD + "\n".join(rows) + "\n"


METRICS_HEAD = """# Metrics

Metrics for Prometheus ([how to](../howto/observability.md)). Counters count one process since its
start.

"""


def render_openapi() -> str:
    """The description that a server returns, from which the dashboard generates its types."""
    return json.dumps(_described(), indent=1, ensure_ascii=False) + "\n"


def _described() -> dict[str, Any]:
    settings = Settings.load(database_url="postgresql://nowhere")
    return describe(make_app(settings, Database("", settings)))


def render_metrics() -> str:
    """docs/reference/metrics.md."""
    parts = []
    for title, families in (
        ("The cluster, served by every server", metrics.OF_THE_CLUSTER),
        (
            "Workers, served by `--metrics-port` and by a server with a worker",
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


PROTO = Path(__file__).resolve().parent.parent / "proto" / "laneway" / "v1" / "dispatch.proto"

RPC_HEAD = """# gRPC

The protocol between [remote workers](../howto/remote-workers.md) and the server: package
`laneway.v1`, file `proto/laneway/v1/dispatch.proto`. It is for authors of workers in other
languages; the conformance suite (`tests/conformance`) checks a worker.

"""
_RPC = re.compile(r"rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);")
_FIELD = re.compile(r"(?:(optional|repeated) )?(map<[^>]+>|[\w.]+) (\w+) = (\d+);")
_VALUE = re.compile(r"(\w+) = (\d+);")


@dataclass
class Part:
    """A service, a message or an enum, with the comment above each of its lines."""

    kind: str
    name: str
    comment: str
    lines: list[tuple[str, str]]


def render_grpc() -> str:
    """docs/reference/grpc.md, from the .proto file, because generated code has no comments."""
    text = PROTO.read_text("utf-8")
    parts = list(_parts(text))
    return RPC_HEAD + "\n".join([_intro(text), *(_render_part(part) for part in parts)])


def _intro(text: str) -> str:
    intro = text.partition("\nsyntax")[0]
    paragraphs = "\n".join(line.removeprefix("//").strip() for line in intro.splitlines())
    return _escaped(paragraphs) + "\n"


def _parts(text: str) -> Iterator[Part]:
    part: Part | None = None
    comments: list[str] = []
    choice = ""
    for raw in text.partition("package ")[2].splitlines():
        line = raw.strip()
        if line.startswith("//"):
            comments.append(line.removeprefix("//").strip())
            continue
        opened = re.match(r"(service|message|enum) (\w+) \{(\})?", line)
        if opened:
            part = Part(opened[1], opened[2], " ".join(comments), [])
            if opened[3]:
                yield part
        elif line.startswith("oneof "):
            choice = line.split()[1]
        elif line == "}" and choice:
            choice = ""
        elif line == "}" and part is not None:
            yield part
        elif part is not None and line:
            part.lines.append((_line(line, choice), " ".join(comments)))
        comments = []


def _line(line: str, choice: str) -> str:
    if found := _RPC.fullmatch(line):
        name, request, stream, response = found.groups()
        return f"| `{name}` | `{request}` → {'stream of ' if stream else ''}`{response}` |"
    if found := _FIELD.fullmatch(line):
        label, kind, name, number = found.groups()
        kind = f"{label} {kind}" if label else kind
        return f"| {number} | `{name}` | `{kind}`{f', one of `{choice}`' if choice else ''} |"
    found = _VALUE.fullmatch(line)
    if found is None:
        raise ValueError(f"{PROTO.name}: cannot parse this line: {line}")
    return f"| {found[2]} | `{found[1]}` | |"


def _render_part(part: Part) -> str:
    comment = f"{_escaped(part.comment)}\n\n" if part.comment else ""
    if not part.lines:
        return f"## {part.name}\n\n{comment}".rstrip("\n") + "\n"
    columns = 3 if part.kind == "service" else 4
    head = "|" + " |" * columns + "\n|" + " --- |" * columns
    rows = [f"{shown} {_escaped(each)} |" for shown, each in part.lines]
    return f"## {part.name}\n\n{comment}{head}\n" + "\n".join(rows).replace("|  |", "| |") + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


DRAWN = {
    "state-machine.md": render_markdown,
    "reference/errors.md": render_errors,
    "reference/grpc.md": render_grpc,
    "reference/http.md": render_http,
    "reference/metrics.md": render_metrics,
    "reference/openapi.json": render_openapi,
    "reference/settings.md": render_settings,
}


if __name__ == "__main__":
    for name, render in DRAWN.items():
        (DOCS / name).write_text(render(), "utf-8")
        print(f"wrote docs/{name}")
