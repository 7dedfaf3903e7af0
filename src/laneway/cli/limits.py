"""`laneway limits …`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laneway.cli import history, inputs, session
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines

app = group("Show and change limits while jobs run.")

Name = Annotated[str, typer.Argument(metavar="LIMIT", help="The limit's name.")]


@app.command()
def ls(json: Json = False) -> None:
    """List limits with their use, and the number of jobs waiting for each."""
    found = session.run(lambda backend: backend.limits())
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import tables

    show(tables.limits(found))


@app.command("set")
def set_(
    limit: Name,
    max_concurrent: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            parser=inputs.whole_or("unbounded"),
            help="Holders at once, or `unbounded`.",
        ),
    ] = None,
    rate: Annotated[
        Any,
        typer.Option(
            metavar="N/PERIOD",
            parser=inputs.rate,
            help="Starts per period, such as 60/1m, or `none`.",
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(metavar="SCOPE", help="Where it is counted: cluster, host or process."),
    ] = None,
    json: Json = False,
) -> None:
    """Change a limit or create it; a new one allows one holder in the cluster by default."""
    change: dict[str, object] = {}
    if max_concurrent is not None:
        change["max_concurrent"] = None if max_concurrent == "unbounded" else int(max_concurrent)
    if rate is not None:
        change["rate_count"], change["rate_period_s"] = rate
    if scope is not None:
        change["scope"] = scope
    if not change:
        raise typer.BadParameter("give --max-concurrent, --rate or --scope")
    tuned = session.run(lambda backend: backend.tune_limit(limit, change))
    if json:
        show_json(tuned.limit.to_dict())
    else:
        done = "created" if tuned.is_new else f"changed {', '.join(sorted(change))}"
        note(f"limit {limit}: {done}")


@app.command()
def delete(limit: Name, json: Json = False) -> None:
    """Delete a limit that no handler needs; `rollback` restores it."""
    session.run(lambda backend: backend.delete_limit(limit))
    if json:
        show_json({"name": limit, "deleted": True})
    else:
        note(f"limit {limit}: deleted")


history.add_commands(app, "limit")
