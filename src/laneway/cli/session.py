"""Settings, database and principal of one run of the command line."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from laneway.config import Settings
    from laneway.domain.actor import Actor
    from laneway.store.database import Database

T = TypeVar("T")

_by: str | None = None


def use_principal(name: str | None) -> None:
    """Who is said to ask for changes; None: whoever runs the program."""
    global _by
    _by = name


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
    from laneway.config import Settings

    return Settings.load()


@asynccontextmanager
async def opened() -> AsyncIterator[Database]:
    """The configured database, or the embedded one; unreachable is said at once."""
    from laneway.opening import open_database
    from laneway.store.health import reach

    chosen = settings()
    if chosen.conninfo is not None:
        await reach(chosen.conninfo, chosen)
    async with open_database(chosen, role="cli") as db:
        yield db


def run(verb: Callable[[Database], Awaitable[T]]) -> T:
    """Runs one verb on the database."""

    import asyncio

    async def once() -> T:
        async with opened() as db:
            return await verb(db)

    return asyncio.run(once())
