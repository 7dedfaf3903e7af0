"""Settings, and where and as whom one run of the command line does its verbs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from laneway.cli.backends.database import DatabaseBackend
    from laneway.cli.backends.server import ServerBackend
    from laneway.config.settings import Settings
    from laneway.domain.actor import Actor
    from laneway.http import AsyncClient
    from laneway.http.connection import Door
    from laneway.store.database import Database

T = TypeVar("T")
Backend: TypeAlias = "DatabaseBackend | ServerBackend"
# What a client calls it, and what the command line does.
_WORDS: Final = {"base_url": "--server", "token": "--token (LANEWAY_TOKEN)"}


@dataclass(frozen=True, slots=True)
class Server:
    """Where verbs are done if not in a database, and with which token, if one was given."""

    url: str
    token: str | None = field(repr=False)
    allow_insecure: bool = False


_by: str | None = None
_server: Server | None = None


def use_principal(name: str | None) -> None:
    """Who is said to ask for changes; None: whoever runs the program."""
    global _by
    _by = name


def use_server(server: Server | None) -> None:
    """Where verbs are done; None: in the configured database."""
    global _server
    _server = server


def read_token(given: str | None) -> str:
    """The token as given, else from the file that LANEWAY_TOKEN_FILE names."""
    from laneway.errors import ConfigError, InvalidInput
    from laneway.http.connection import checked_token

    if given and given.strip():
        return given
    file = os.environ.get("LANEWAY_TOKEN_FILE")
    if not file:
        raise ConfigError(
            "a server needs to know who asks: give a token by LANEWAY_TOKEN, LANEWAY_TOKEN_FILE "
            "or --token (`laneway tokens create` makes one)"
        )
    try:
        return checked_token(Path(file).read_text("utf-8"))
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"LANEWAY_TOKEN_FILE: cannot read {file}: {why}") from None
    except InvalidInput:
        raise ConfigError(
            f"LANEWAY_TOKEN_FILE: {file} must hold the token alone, "
            "as `laneway tokens create` shows it without --json"
        ) from None


def principal() -> Actor:
    """`--by`, else the account and host this runs under; the audit knows the door by it."""
    from laneway.domain.actor import Actor

    if _by:
        return Actor(_by, door="cli")
    import getpass
    import socket

    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        account = f"uid {os.getuid()}"  # a container without an entry for its account
    return Actor(f"{account}@{socket.gethostname()}", door="cli")


def settings() -> Settings:
    """The settings of this process."""
    from laneway.config.settings import Settings

    return Settings.load()


@asynccontextmanager
async def opened() -> AsyncIterator[Database]:
    """The configured database, or the embedded one; unreachable is said at once."""
    from laneway.app.open_database import open_database
    from laneway.store.health import reach

    chosen = settings()
    if chosen.conninfo is not None:
        await reach(chosen.conninfo, chosen)
    async with open_database(chosen, role="cli") as db:
        yield db


def is_remote() -> bool:
    """Whether a server is asked."""
    return _server is not None


@asynccontextmanager
async def connected(door: Door = "cli") -> AsyncIterator[AsyncClient]:
    """A client of the server that was named."""
    from laneway.errors import InvalidInput
    from laneway.http import AsyncClient

    if _server is None:
        raise RuntimeError("no server was named")
    token = read_token(_server.token)
    try:
        made = AsyncClient(_server.url, token, door=door, allow_insecure=_server.allow_insecure)
    except InvalidInput as error:
        rule = error.rule.replace("allow_insecure=True", "--allow-insecure")
        raise InvalidInput(_WORDS.get(error.field, error.field), rule) from None
    async with made as client:
        yield client


@asynccontextmanager
async def _desk() -> AsyncIterator[Backend]:
    if _server is not None:
        from laneway.cli.backends.server import ServerBackend

        async with connected() as client:
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
    """Runs one verb, in the database or by the server."""
    import asyncio

    async def once() -> T:
        async with _desk() as backend:
            return await verb(backend)

    return asyncio.run(once())


def run_here(verb: Callable[[Database], Awaitable[T]]) -> T:
    """Runs one verb that no server does."""
    import asyncio

    async def once() -> T:
        async with opened() as db:
            return await verb(db)

    return asyncio.run(once())
