"""`laneway audit`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laneway.cli import connection, inputs
from laneway.cli.inputs import Json
from laneway.cli.output import console, note, show, show_json_lines


def audit(
    actor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only entries of this principal.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="Only this action, such as job.cancelled.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only this kind, such as job, lane or schedule."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this object: a name or a job id.")
    ] = None,
    door: Annotated[
        str | None,
        typer.Option(
            metavar="DOOR", help="Only through this interface: http, ui, grpc, cli, mcp or python."
        ),
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(metavar="OUTCOME", help="Only this outcome: done or refused.")
    ] = None,
    since: Annotated[
        Any,
        typer.Option(
            metavar="TIME", parser=inputs.since, help="Since this time, or for the last 2h, 1d …"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most N entries, 1 to 200.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue after this cursor.")
    ] = None,
    json: Json = False,
) -> None:
    """Show who changed what, and through which interface, newest first."""
    from laneway.domain.audit import AuditFilter
    from laneway.operations.audit import list_audit_entries

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
    asked = list_audit_entries(wanted.check())
    page = connection.run(lambda backend: backend.page(asked, limit, cursor))
    if json:
        show_json_lines(page.items)
    elif not page.items and page.next_cursor is None:
        note("no audit entry matches")
    elif not page.items:
        note("no entry matches among the newest; older ones may")
    else:
        from laneway.cli import tables

        show(tables.audit_entries(page.items, width=console().width))
    if page.next_cursor is not None:
        note(f"older entries: --cursor {page.next_cursor}")
