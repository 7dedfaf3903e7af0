"""`laneway tokens …`"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO
from uuid import UUID

import typer

from laneway.cli import connection, inputs
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import line, moment, note, show, show_json, show_json_lines, visible
from laneway.domain.codec import to_json
from laneway.errors import LanewayError

if TYPE_CHECKING:
    from laneway.cli.connection import Backend
    from laneway.domain.access import NewToken, Token
    from laneway.domain.job_id import IdPrefix

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
    asked = operations.create_token(principal, name, narrowed, chosen, life, job_types=types)

    async def verb(backend: Backend) -> None:
        with ExitStack() as stack:
            # Created before the token: a token that cannot be written would be lost.
            file = None if out is None else stack.enter_context(_private_file(out))
            made = await backend.call(asked)
            if file is not None:
                file.write(f"{made.secret}\n")
        _show(made, out, json=json)
        # The secret is safe by now, and the token works without these notes.
        with suppress(LanewayError):
            await _note_lacking(backend, principal, narrowed)

    connection.run(verb)


def _show(made: NewToken, out: Path | None, *, json: bool) -> None:
    if json:
        show_json({**to_json(made.token), **({} if out else {"token": made.secret})})
        return
    end = made.token.expires_at
    until = f"until {moment(end)}" if end else "without expiry"
    owner = visible(made.token.principal)
    if out is not None:
        note(f"token {made.token.id} of {owner}, {until}: written to {out}")
        return
    note(f"token {made.token.id} of {owner}, {until}; it is not shown again:")
    line(made.secret)


async def _note_lacking(
    backend: Backend, principal: str, permissions: Sequence[str] | None
) -> None:
    """Print a note about permissions of a token that no role of its principal has."""
    from laneway.operations import access as operations

    granted = await backend.items(operations.list_grants(principal=principal))
    names = {grant.role for grant in granted}
    roles = [role for role in await backend.items(operations.list_roles()) if role.name in names]
    held = {each for role in roles for each in role.permissions}
    if permissions is None and not held:
        note(
            f"{visible(principal)} has no role, so the token can do nothing yet:"
            " grant one with `laneway roles grant`"
        )
    if lacking := sorted(set(permissions or ()) - held):
        note(
            f"no role of {visible(principal)} has {', '.join(lacking)}: the token cannot use"
            f" {'it' if len(lacking) == 1 else 'them'} until one is granted with"
            " `laneway roles grant`"
        )


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

    found = connection.items(operations.list_tokens(principal=principal))
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
        Any,
        typer.Argument(
            metavar="TOKEN",
            parser=inputs.record_id,
            help="The id of a token, from `tokens ls`, or its first digits.",
        ),
    ],
    json: Json = False,
) -> None:
    """Revoke a token for good; every server refuses it within five seconds."""
    gone = connection.run(lambda backend: _revoke(backend, token))
    if json:
        show_json(gone)
    else:
        note(f"token {gone.id} of {visible(gone.principal)}: revoked")


async def _revoke(backend: Backend, given: UUID | IdPrefix) -> Token:
    from laneway.cli.record_ids import only_record
    from laneway.operations import access as operations

    if not isinstance(given, UUID):
        given = only_record(given, await backend.items(operations.list_tokens()), "token").id
    return await backend.call(operations.revoke_token(given))
