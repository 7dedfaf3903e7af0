"""`laneway audit`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laneway.cli import inputs, session
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json_lines


def audit(
    actor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this one did.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="Only this, like job.cancelled.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only of this kind, like job, lane or schedule."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of this one: a name, or a job's id.")
    ] = None,
    door: Annotated[
        str | None,
        typer.Option(metavar="DOOR", help="Only through http, ui, grpc, cli, mcp or python."),
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(metavar="OUTCOME", help="Only done, or only refused.")
    ] = None,
    since: Annotated[
        Any,
        typer.Option(metavar="TIME", parser=inputs.since, help="Since then, or 2h, 1d ago."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most this many, 1 to 200.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Where the page before ended.")
    ] = None,
    json: Json = False,
) -> None:
    """Show who did what through which door, newest first."""
    from laneway.domain.audit import AuditFilter

    ago = since if isinstance(since, float) else None
    wanted = AuditFilter(
        actor=actor,
        action=action,
        kind=kind,
        name=name,
        door=door,
        outcome=outcome,
        since=None if ago is not None else since,
        newer_than=ago,
    )
    page = session.run(lambda backend: backend.acts(wanted, limit=limit, cursor=cursor))
    if json:
        show_json_lines(each.to_dict() for each in page.items)
    elif not page.items and page.next_cursor is None:
        note("the audit has no such act")
    elif not page.items:
        note("the newest acts have no such act")
    else:
        from laneway.cli import tables

        show(tables.acts(page.items))
    if page.next_cursor is not None:
        note(f"older ones: --cursor {page.next_cursor}")
