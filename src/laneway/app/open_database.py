"""Finds and opens the database of the settings, without a worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.config.settings import Settings
from laneway.errors import NeedsDatabase
from laneway.store.database import Database

log = logging.getLogger("laneway")


def resolve_dsn(settings: Settings) -> str:
    """The DSN of the settings; without one, starts and migrates embedded PostgreSQL."""
    if settings.conninfo is not None:
        return settings.conninfo
    if not settings.embedded:
        raise NeedsDatabase(
            "LANEWAY_DATABASE_URL is not set and embedded PostgreSQL is off:"
            " in a remote worker, submit through the server with laneway.http"
        )
    # Most applications have a database: do not import these for them.
    from laneway.embedded.postgres import EmbeddedPostgres
    from laneway.store.migrate import migrate

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
    """Opens the database for a command, and closes it afterwards."""
    database = Database(await asyncio.to_thread(resolve_dsn, settings), settings, role=role)
    try:
        yield database
    finally:
        await database.close()
