"""`laneway tokens …`"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO
from uuid import UUID

import typer

from laneway.cli import inputs, session
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show, show_json, show_json_lines, visible
from laneway.domain.codec import to_json

app = group("Create and revoke tokens.")

_NEVER = "never"


def _life(text: str) -> float | str:
    if text == _NEVER:
        return _NEVER
    try:
        return inputs.duration(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}, or `never`") from None


@app.command()
def create(
    principal: Annotated[
        str, typer.Argument(metavar="PRINCIPAL", help="The owner, whose roles it has.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="Its purpose.")],
    permissions: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Only these permissions of its roles."),
    ] = None,
    lanes: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only in these lanes; all by default.")
    ] = None,
    job_types: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Remote workers receive only these job types."),
    ] = None,
    expires_in: Annotated[
        Any,
        typer.Option(
            metavar="DURATION", parser=_life, help="Lifetime, 90d by default, or `never`."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the token to a new private file instead of stdout."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Create a token and print it; it cannot be shown again."""
    from laneway.domain.access import TOKEN_LIFE_S
    from laneway.operations import access as operations

    narrowed = None if permissions is None else inputs.names(permissions)
    chosen = None if lanes is None else inputs.names(lanes)
    types = None if job_types is None else inputs.names(job_types)
    life = TOKEN_LIFE_S if expires_in is None else None if expires_in == _NEVER else expires_in
    with ExitStack() as stack:
        # Created before the token: a token that cannot be written would be lost.
        file = None if out is None else stack.enter_context(_private_file(out))
        made = session.call(
            operations.create_token(principal, name, narrowed, chosen, life, job_types=types)
        )
        if file is not None:
            file.write(f"{made.secret}\n")
    if json:
        show_json({**to_json(made.token), **({} if out else {"token": made.secret})})
        return
    end = made.token.expires_at
    until = f"until {end.astimezone():%Y-%m-%d %H:%M}" if end else "without expiry"
    if out is not None:
        note(f"token {made.token.id} of {visible(principal)}, {until}: written to {out}")
        return
    note(f"token {made.token.id} of {visible(principal)}, {until}; it is not shown again:")
    line(made.secret)


@contextmanager
def _private_file(path: Path) -> Iterator[TextIO]:
    """Create a file readable only by its owner; delete it if the block fails."""
    from laneway.errors import InvalidInput

    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInput("--out", f"cannot create {path}: {reason}") from None
    try:
        with os.fdopen(number, "w", encoding="ascii") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@app.command()
def ls(
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only tokens of this principal.")
    ] = None,
    json: Json = False,
) -> None:
    """List tokens without their secrets: owner, expiry, last use."""
    from laneway.operations import access as operations

    found = session.items(operations.list_tokens(principal=principal))
    if json:
        show_json_lines(found)
    elif not found:
        note("no tokens: create one with `laneway tokens create PRINCIPAL --name …`")
    else:
        from laneway.cli import access_tables

        show(access_tables.tokens(found))


@app.command()
def revoke(
    token: Annotated[
        UUID,
        typer.Argument(
            metavar="TOKEN", parser=inputs.record_id, help="The id of a token, from `tokens ls`."
        ),
    ],
    json: Json = False,
) -> None:
    """Revoke a token for good; every server refuses it within five seconds."""
    from laneway.operations import access as operations

    gone = session.call(operations.revoke_token(token))
    if json:
        show_json(gone)
    else:
        note(f"token {gone.id} of {visible(gone.principal)}: revoked")
