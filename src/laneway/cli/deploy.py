"""`laneway deploy …`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laneway.cli.exits import ExitCode, fail
from laneway.cli.groups import group
from laneway.cli.output import line

app = group("Print dashboards and alert rules for your monitoring.")


@app.command("ls")
def list_files() -> None:
    """List the files that Laneway ships for Grafana and Prometheus."""
    for name in _files():
        line(name)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `laneway deploy ls` prints it.")],
) -> None:
    """Print one of the files."""
    found = _files()
    if name not in found:
        raise fail(f"no file {name!r}: `laneway deploy ls` lists them", ExitCode.NOT_FOUND)
    line(found[name].read_text("utf-8").rstrip("\n"))


def _files() -> dict[str, Path]:
    package = Path(__file__).resolve().parents[1]
    # A wheel has them in the package, a checkout beside `src`.
    root = next(one for one in (package / "deploy", package.parents[1] / "deploy") if one.is_dir())
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path for path in files}
