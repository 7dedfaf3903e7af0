"""Finds the database that the settings mean and opens it, without what workers need besides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.config.settings import Settings
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import NeedsDatabase
from laneway.store.database import Database
from laneway.store.migrate import migrate

log = logging.getLogger("laneway")


def resolve_dsn(settings: Settings) -> str:
    """What to connect to; without a setting, embedded PostgreSQL is started and migrated."""
    if settings.conninfo is not None:
        return settings.conninfo
    if not settings.embedded:
        raise NeedsDatabase(
            "there is no database here (LANEWAY_DATABASE_URL), and embedded PostgreSQL is off:"
            " a remote worker submits through a server (laneway.http)"
        )
    server = EmbeddedPostgres(settings.data_dir, binaries=settings.pg_bin)
    log.warning(
        "no LANEWAY_DATABASE_URL or DATABASE_URL: using embedded PostgreSQL in %s,"
        " which is for development",
        server.data_dir,
    )
    dsn = server.start()
    migrate(dsn)
    return dsn


@asynccontextmanager
async def open_database(settings: Settings, *, role: str) -> AsyncIterator[Database]:
    """A database for a command or a door."""
    database = Database(await asyncio.to_thread(resolve_dsn, settings), settings, role=role)
    try:
        yield database
    finally:
        await database.close()
