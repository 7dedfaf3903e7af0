"""`laneway limits …`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laneway.cli import connection, history, inputs
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines
from laneway.cli.setting_options import takes_settings
from laneway.domain.limit import Limit, LimitSettings, Tuned
from laneway.operations import limits as operations

app = group("Show and change limits while jobs run.")

Name = Annotated[str, typer.Argument(metavar="LIMIT", help="The limit's name.")]


@app.command()
def ls(json: Json = False) -> None:
    """List limits with their use, and the number of jobs waiting for each."""
    found = connection.items(operations.list_limits())
    if json:
        show_json_lines(found)
        return
    from laneway.cli import tables

    show(tables.limits(found))


@app.command("set")
@takes_settings(LimitSettings, without=("rate_count", "rate_period_s"))
def set_(
    limit: Name,
    settings: LimitSettings,
    rate: Annotated[
        Any,
        typer.Option(
            metavar="N/PERIOD",
            parser=inputs.rate,
            help="Starts per period, such as 60/1m, or `none`.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Change a limit or create it; a new one allows one holder in the cluster by default."""
    if rate is not None:
        settings["rate_count"], settings["rate_period_s"] = rate
    if not settings:
        raise typer.BadParameter("give --max-concurrent, --rate or --scope")
    before, tuned = connection.run(lambda backend: _tune(backend, limit, settings))
    if json:
        show_json(tuned.limit)
        return
    from laneway.cli import tables

    done = "created" if tuned.is_new else tables.limit_change(before, tuned.limit)
    note(f"limit {limit}: {done}")


async def _tune(
    backend: connection.Backend, name: str, settings: LimitSettings
) -> tuple[Limit | None, Tuned]:
    """The limit before the change, and the change."""
    listed = await backend.items(operations.list_limits())
    before = next((each.limit for each in listed if each.limit.name == name), None)
    return before, await backend.tune_limit(name, settings)


@app.command()
def delete(limit: Name, json: Json = False) -> None:
    """Delete a limit that no handler needs; `rollback` restores it."""
    connection.call(operations.delete_limit(limit))
    if json:
        show_json({"name": limit, "deleted": True})
    else:
        note(f"limit {limit}: deleted")


history.add_commands(app, "limit", operations.list_limit_changes, operations.roll_back_limit)
