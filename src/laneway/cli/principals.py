"""`laneway principals …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import session
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show, show_json, show_json_lines, visible

if TYPE_CHECKING:
    from laneway.domain.access import Principal

app = group("Know the people and services that use the server.")

Name = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="The principal's name.")]


@app.command()
def create(
    principal: Name,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="A person or a service: who logs in, or only calls.")
    ] = "person",
    json: Json = False,
) -> None:
    """Create a principal; it may do nothing before it is granted a role."""
    _tell(session.run(lambda backend: backend.create_principal(principal, kind)), json)


@app.command()
def ls(json: Json = False) -> None:
    """List the principals."""
    found = session.run(lambda backend: backend.principals())
    if json:
        show_json_lines(each.to_dict() for each in found)
    elif not found:
        note("there are no principals: `laneway principals create NAME` makes one")
    else:
        from laneway.cli import access_tables

        show(access_tables.principals(found))


@app.command()
def disable(principal: Name, json: Json = False) -> None:
    """End the power of its tokens at once, and its sessions for good."""
    _tell(session.run(lambda backend: backend.disable_principal(principal)), json)


@app.command()
def enable(principal: Name, json: Json = False) -> None:
    """Give its tokens their power back."""
    _tell(session.run(lambda backend: backend.enable_principal(principal)), json)


@app.command()
def login(principal: Name, json: Json = False) -> None:
    """Make the secret of a link that logs a person's browser in, once and within ten minutes."""
    from laneway.control import sessions

    if session.is_remote():
        raise typer.BadParameter("no server makes login links: run it where the database is")
    by = session.principal()
    secret = session.run_here(lambda db: sessions.create_login_link(db, principal, by=by))
    if json:
        show_json({"principal": principal, "secret": secret, "expires_in": sessions.LINK_LIFE_S})
    else:
        note("works once, within ten minutes, behind your server's address and /login?link=")
        line(secret)


def _tell(principal: Principal, json: bool) -> None:
    if json:
        show_json(principal.to_dict())
    else:
        state = "disabled" if principal.is_disabled else "enabled"
        note(f"principal {visible(principal.name)}: {principal.kind}, {state}")
