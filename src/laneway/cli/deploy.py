"""`laneway deploy …`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laneway.cli.exits import ExitCode, fail
from laneway.cli.groups import group
from laneway.cli.output import line

app = group("Print or copy dashboards, alert rules, a Helm chart, container and systemd files.")


@app.command("ls")
def list_files() -> None:
    """List the files that Laneway ships for monitoring and deployment."""
    for name in _files():
        line(name)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `laneway deploy ls` prints it.")],
) -> None:
    """Print one of the files."""
    found = _files()
    if name not in found:
        raise _unknown(name)
    line(found[name].read_text("utf-8").rstrip("\n"))


@app.command()
def copy(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A file or directory, such as `helm/laneway`.")
    ],
    directory: Annotated[Path, typer.Argument(help="Where to; created if it is missing.")],
) -> None:
    """Copy a file, or all files of a directory. Existing files are never overwritten."""
    found = _below(name)
    parent = name.rstrip("/").rpartition("/")[0]
    targets = {each: directory / each[len(parent) :].lstrip("/") for each in found}
    for target in targets.values():
        if target.exists():
            raise fail(f"{target} exists: remove it, or choose another directory", ExitCode.REFUSED)
    for each, target in targets.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(found[each].read_bytes())
        except OSError as error:
            raise fail(f"cannot write {target}: {error.strerror}", ExitCode.FAILED) from None
        line(str(target))


def _below(name: str) -> dict[str, Path]:
    """The file with this name, or the files of the directory with this name."""
    found = _files()
    folder = name.rstrip("/") + "/"
    chosen = {each: path for each, path in found.items() if each == name or each.startswith(folder)}
    if not chosen:
        raise _unknown(name)
    return chosen


def _unknown(name: str) -> Exception:
    return fail(f"no file {name!r}: `laneway deploy ls` lists them", ExitCode.NOT_FOUND)


def _files() -> dict[str, Path]:
    package = Path(__file__).resolve().parents[1]
    # A wheel has them in the package, a checkout beside `src`.
    root = next(one for one in (package / "deploy", package.parents[1] / "deploy") if one.is_dir())
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path for path in files}
