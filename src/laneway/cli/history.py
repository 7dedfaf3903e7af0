"""`history` and `rollback` of `laneway lanes`, `limits` and `schedules`"""

from __future__ import annotations

from typing import Annotated

import typer

from laneway.cli import session
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name.")]
AnyName = Annotated[str | None, typer.Argument(metavar="NAME", help="Only changes of this one.")]
Limit = Annotated[int, typer.Option(metavar="N", help="At most N changes, 1 to 200.")]
Before = Annotated[int | None, typer.Option(metavar="ID", help="Only changes older than this one.")]
To = Annotated[
    int | None,
    typer.Option(
        metavar="ID",
        min=0,
        help="Restore the state right after this change; 0: before the oldest kept change.",
    ),
]


def add_commands(app: typer.Typer, kind: str) -> None:
    """Add `history` and `rollback` to a group of commands."""

    @app.command("history")
    def history_(
        name: AnyName = None, limit: Limit = 50, before: Before = None, json: Json = False
    ) -> None:
        """Show who changed what, newest first."""
        _show_history(kind, name, limit, before, json)

    @app.command("rollback")
    def rollback_(name: Name, to: To = None, json: Json = False) -> None:
        """Undo the newest change, or restore an earlier state; this is itself a change."""
        _roll_back(kind, name, to, json)


def _show_history(kind: str, name: str | None, limit: int, before: int | None, json: bool) -> None:
    # The pause gate affects every lane, so its changes belong to their history.
    kinds = [kind, "gate"] if kind == "lane" and name is None else [kind]
    found = session.run(lambda backend: backend.history(kinds, name, limit=limit, before=before))
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    if not found:
        note(f"no change of {f'the {kind} {name}' if name else f'a {kind}'} is kept")
        return
    from laneway.cli import tables

    show(tables.changes(found))
    if len(found) == limit:
        note(f"older changes: --before {found[-1].id}")


def _roll_back(kind: str, name: str, to: int | None, json: bool) -> None:
    from laneway.cli import tables

    change = session.run(lambda backend: backend.rollback(kind, name, to))
    if json:
        show_json({"change": change.to_dict() if change else None})
    elif change is None:
        note(f"{kind} {name}: unchanged")
    else:
        note(f"{kind} {name}: {tables.difference(change)} (change {change.id})")
