"""`laneway principals …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import connection
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show, show_json, show_json_lines, visible

if TYPE_CHECKING:
    from laneway.domain.access import Principal

app = group("Manage the people and services that use the server.")

Name = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="The principal's name.")]


@app.command()
def create(
    principal: Name,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="person (can log in) or service.")
    ] = "person",
    json: Json = False,
) -> None:
    """Create a principal; it has no permissions until it is granted a role."""
    from laneway.operations import access as operations

    _show(connection.call(operations.create_principal(principal, kind)), json)


@app.command()
def ls(json: Json = False) -> None:
    """List the principals."""
    from laneway.operations import access as operations

    found = connection.items(operations.list_principals())
    if json:
        show_json_lines(found)
    elif not found:
        note("no principals: create one with `laneway principals create NAME`")
    else:
        from laneway.cli import access_tables

        show(access_tables.principals(found))


@app.command()
def disable(principal: Name, json: Json = False) -> None:
    """Disable a principal: its tokens stop working at once, its sessions end for good."""
    from laneway.operations import access as operations

    _show(connection.call(operations.switch_principal(principal, disabled=True)), json)


@app.command()
def enable(principal: Name, json: Json = False) -> None:
    """Enable a principal: its tokens work again."""
    from laneway.operations import access as operations

    _show(connection.call(operations.switch_principal(principal, disabled=False)), json)


@app.command()
def login(
    principal: Name,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The server's address: print the whole login link."),
    ] = None,
    json: Json = False,
) -> None:
    """Print a login link, or only its secret; it works once, within ten minutes."""
    from laneway.control import sessions

    if connection.is_remote():
        raise typer.BadParameter(
            "login links need a database: remove --server (LANEWAY_SERVER), and give the address"
            " with --url"
        )
    if url is not None and not url.startswith(("http://", "https://")):
        raise typer.BadParameter("--url: write the whole address, such as http://127.0.0.1:8420")
    by = connection.principal()
    secret = connection.run_on_database(lambda db: sessions.create_login_link(db, principal, by=by))
    link = None if url is None else f"{url.rstrip('/')}/login?link={secret}"
    if json:
        made = {"principal": principal, "secret": secret, "expires_in": sessions.LINK_LIFE_S}
        show_json(made if link is None else {**made, "link": link})
    elif link is not None:
        note("open in a browser (works once, within ten minutes)")
        line(link)
    else:
        note("paste into the dashboard's sign-in form (works once, within ten minutes);")
        note("--url http://127.0.0.1:8420, the address of your server, prints a link instead")
        line(secret)


def _show(principal: Principal, json: bool) -> None:
    if json:
        show_json(principal)
    else:
        state = "disabled" if principal.is_disabled else "enabled"
        note(f"principal {visible(principal.name)}: {principal.kind}, {state}")
