"""`history` and `rollback` of `laneway lanes`, `limits` and `schedules`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import connection
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines
from laneway.domain.codec import to_json

if TYPE_CHECKING:
    from laneway.domain.change import Change
    from laneway.domain.page import Page
    from laneway.operations.operation import Operation

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


def add_commands(
    app: typer.Typer,
    kind: str,
    changes: Operation[[str], Page[Change]],
    roll_back: Operation[[str, int | None], Change | None],
) -> None:
    """Add `history` and `rollback` to a group of commands."""

    @app.command("history")
    def history_(
        name: AnyName = None, limit: Limit = 50, before: Before = None, json: Json = False
    ) -> None:
        """Show who changed what, newest first."""
        if name is None:
            # The pause gate affects every lane, so its changes belong to their history.
            kinds = [kind, "gate"] if kind == "lane" else [kind]
            found = connection.run(
                lambda backend: backend.history(kinds, limit=limit, before=before)
            )
        else:
            cursor = None if before is None else str(before)
            found = connection.page(changes(name), limit, cursor)
        _show_history(kind, name, found, limit, json)

    @app.command("rollback")
    def rollback_(name: Name, to: To = None, json: Json = False) -> None:
        """Undo the newest change, or restore an earlier state; this is itself a change."""
        _show_rollback(kind, name, connection.call(roll_back(name, to)), json)


def _show_history(kind: str, name: str | None, found: list[Change], limit: int, json: bool) -> None:
    if json:
        show_json_lines(found)
        return
    if not found:
        note(f"no change of {f'the {kind} {name}' if name else f'a {kind}'} is kept")
        return
    from laneway.cli import tables

    show(tables.changes(found))
    if len(found) == limit:
        note(f"older changes: --before {found[-1].id}")


def _show_rollback(kind: str, name: str, change: Change | None, json: bool) -> None:
    from laneway.cli import tables

    if json:
        show_json({"change": to_json(change)})
    elif change is None:
        note(f"{kind} {name}: unchanged")
    else:
        note(f"{kind} {name}: {tables.difference(change)} (change {change.id})")
