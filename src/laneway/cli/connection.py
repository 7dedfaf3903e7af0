"""Settings, backend and principal of one run of the command line."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from laneway.cli import variables
from laneway.cli.output import note

if TYPE_CHECKING:
    from laneway.cli.backends.database import DatabaseBackend
    from laneway.cli.backends.server import ServerBackend
    from laneway.config.settings import Settings
    from laneway.domain.actor import Actor
    from laneway.domain.page import Page
    from laneway.http import AsyncClient
    from laneway.http.connection import Door
    from laneway.operations.operation import Invocation
    from laneway.store.database import Database

T = TypeVar("T")
Backend: TypeAlias = "DatabaseBackend | ServerBackend"
# The client's argument names, and the options of the command line.
_OPTIONS: Final = {"base_url": "--server", "token": "--token (LANEWAY_TOKEN)"}


@dataclass(frozen=True, slots=True)
class Server:
    """The server to use instead of a database, and its token if given."""

    url: str
    token: str | None = field(repr=False)
    allow_insecure: bool = False
    # The variable or option that gave the token.
    token_from: str = "LANEWAY_TOKEN"  # noqa: S105 - the name of a variable


_by: str | None = None
_server: Server | None = None


def use_principal(name: str | None) -> None:
    """Set the name recorded with changes; None: the account that runs the program."""
    global _by
    _by = name


def use_server(server: Server | None) -> None:
    """Set the server to use; None: use the configured database."""
    global _server
    _server = server


def token_source(server: Server) -> str:
    """The option, variable or file that the token was read from."""
    if server.token and server.token.strip():
        return server.token_from
    return f"LANEWAY_TOKEN_FILE ({os.environ.get('LANEWAY_TOKEN_FILE')})"


def read_token(given: str | None) -> str:
    """Return the given token, else read the file that LANEWAY_TOKEN_FILE names."""
    from laneway.errors import ConfigError, InvalidInput
    from laneway.http.connection import checked_token

    if given and given.strip():
        return given
    file = os.environ.get("LANEWAY_TOKEN_FILE")
    if not file:
        raise ConfigError(
            "a server needs a token: set LANEWAY_TOKEN or LANEWAY_TOKEN_FILE, or use "
            "--token (`laneway tokens create` creates one)"
        )
    try:
        return checked_token(Path(file).read_text("utf-8"))
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"LANEWAY_TOKEN_FILE: cannot read {file}: {why}") from None
    except InvalidInput:
        raise ConfigError(
            f"LANEWAY_TOKEN_FILE: {file} must contain only the token, "
            "as `laneway tokens create` prints it without --json"
        ) from None


def principal() -> Actor:
    """`--by`, else the account and host of this process; marks changes as made by the CLI."""
    from laneway.domain.actor import Actor

    if _by:
        return Actor(_by, door="cli")
    import getpass
    import socket

    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        account = f"uid {os.getuid()}"  # A container may have no entry for its account.
    return Actor(f"{account}@{socket.gethostname()}", door="cli")


def settings() -> Settings:
    """Load the settings of this process."""
    from laneway.config.settings import Settings

    variables.note_unknown()
    return Settings.load()


@asynccontextmanager
async def opened() -> AsyncIterator[Database]:
    """Open the configured or the embedded database; fail at once if it is unreachable."""
    from laneway.app.open_database import open_database
    from laneway.config.sources import database_source
    from laneway.errors import DatabaseUnavailable
    from laneway.store.health import check_reachable

    chosen = settings()
    if chosen.conninfo is not None:
        try:
            await check_reachable(chosen.conninfo, chosen)
        except DatabaseUnavailable as error:
            if type(error) is not DatabaseUnavailable:
                raise
            source = database_source(chosen.conninfo)
            cure = f"start PostgreSQL there, or correct {source}"
            raise DatabaseUnavailable(f"{error} ({cure})") from error
    async with open_database(chosen, role="cli", announce=False) as db:
        yield db


def is_remote() -> bool:
    """Whether this run uses a server."""
    return _server is not None


@asynccontextmanager
async def connected(
    door: Door = "cli", *, notes_expiry: bool = False
) -> AsyncIterator[AsyncClient]:
    """Open a client of the chosen server; afterwards note a token that expires soon."""
    from laneway.domain.token import expiry_text
    from laneway.errors import InvalidInput, ServerUnreachable, Unauthenticated
    from laneway.http import AsyncClient
    from laneway.http.connection import UNREACHED

    if _server is None:
        raise RuntimeError("no server was chosen")
    variables.note_unknown()
    token = read_token(_server.token)
    try:
        created = AsyncClient(_server.url, token, door=door, allow_insecure=_server.allow_insecure)
    except InvalidInput as error:
        rule = error.rule.replace("allow_insecure=True", "--allow-insecure")
        raise InvalidInput(_OPTIONS.get(error.field, error.field), rule) from None
    async with created as client:
        try:
            yield client
        except Unauthenticated as error:
            source = token_source(_server)
            raise Unauthenticated(
                f"{error} (the token is from {source}; `laneway tokens create` creates another)"
            ) from error
        except ServerUnreachable as error:
            if UNREACHED not in str(error):
                raise
            cure = "start it with `laneway server`, or correct --server (LANEWAY_SERVER)"
            raise ServerUnreachable(f"{error} ({cure})") from error
        finally:
            if notes_expiry and client.token_expires_in is not None:
                text = expiry_text(client.token_expires_in)
                note(
                    f"the token from {token_source(_server)} {text}:"
                    " `laneway tokens create` creates another"
                )


@asynccontextmanager
async def backend() -> AsyncIterator[Backend]:
    """Open the database or the server of this run."""
    if _server is not None:
        from laneway.cli.backends.server import ServerBackend

        async with connected(notes_expiry=True) as client:
            yield ServerBackend(client)
        return
    from laneway.cli.backends.database import DatabaseBackend
    from laneway.control.missing import with_names
    from laneway.errors import NotFound

    async with opened() as db:
        try:
            yield DatabaseBackend(db, principal())
        except NotFound as error:
            raise await with_names(db, error) from None


def run(verb: Callable[[Backend], Awaitable[T]]) -> T:
    """Run one verb, on the database or through the server."""
    import asyncio

    async def once() -> T:
        async with backend() as opened_backend:
            return await verb(opened_backend)

    return asyncio.run(once())


def call(asked: Invocation[T]) -> T:
    """Do one declared operation."""
    return run(lambda backend: backend.call(asked))


def items(asked: Invocation[Page[T]]) -> list[T]:
    """Read a whole list."""
    return run(lambda backend: backend.items(asked))


def page(asked: Invocation[Page[T]], limit: int, cursor: str | None = None) -> list[T]:
    """Read one page of a list."""
    return run(lambda backend: backend.page(asked, limit, cursor)).items


def run_on_database(verb: Callable[[Database], Awaitable[T]]) -> T:
    """Run one verb that needs a database."""
    import asyncio

    async def once() -> T:
        async with opened() as db:
            return await verb(db)

    return asyncio.run(once())
