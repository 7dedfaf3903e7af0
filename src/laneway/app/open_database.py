"""Finds and opens the database of the settings, without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from laneway.config.lanes import whole_setup
from laneway.config.project import find_project
from laneway.config.settings import Settings
from laneway.errors import NeedsDatabase
from laneway.observability.safe_logger import SafeLogger
from laneway.store.database import Database

if TYPE_CHECKING:
    from laneway.embedded.location import Location
    from laneway.embedded.postgres import EmbeddedPostgres

log = SafeLogger("laneway")


def resolve_dsn(settings: Settings, *, announce: bool = True) -> str:
    """The DSN of the settings; without one, starts and migrates embedded PostgreSQL.

    Without `announce` the embedded server is logged only if this call creates it.
    """
    if settings.conninfo is not None:
        return settings.conninfo
    if settings.embedded == "off":
        raise NeedsDatabase(
            "LANEWAY_DATABASE_URL is not set and embedded PostgreSQL is off:"
            " in a remote worker, submit through the server with laneway.http"
        )
    from laneway.store.migrate import migrate

    location = _location(settings)
    server = _server(settings, location)
    is_new = not server.has_data
    if announce or is_new:
        log.warning(
            "no LANEWAY_DATABASE_URL or DATABASE_URL: using embedded PostgreSQL in %s,"
            " which is for development",
            server.data_dir,
        )
    if is_new:
        _explain_location(location)
    dsn = server.start()
    migrate(dsn, lanes=whole_setup(settings.lanes))
    return dsn


def running_dsn(settings: Settings) -> str:
    """The DSN of the settings, or of embedded PostgreSQL that runs already; starts nothing."""
    return embedded_server(settings).dsn if settings.conninfo is None else settings.conninfo


def embedded_server(settings: Settings) -> EmbeddedPostgres:
    """The embedded server of the settings, which may not run."""
    return _server(settings, _location(settings))


def _server(settings: Settings, location: Location | None) -> EmbeddedPostgres:
    # Most applications have a database: do not import this for them.
    from laneway.embedded.postgres import EmbeddedPostgres

    return EmbeddedPostgres(settings.data_dir, location=location, binaries=settings.pg_bin)


def _location(settings: Settings) -> Location | None:
    """The location of the project's data; None if the settings choose another."""
    if settings.data_dir is not None or settings.embedded == "shared":
        return None
    from laneway.embedded.location import project_location

    return project_location(find_project())


def _explain_location(location: Location | None) -> None:
    """Log once why the data is not in the project, and where older versions kept theirs."""
    if location is None:
        return
    from laneway.embedded.location import existing_clusters, user_directory

    if location.reason:
        log.warning(
            "not using .laneway in the project: %s; LANEWAY_DATA_DIR chooses another directory",
            location.reason,
        )
    for cluster in existing_clusters(user_directory()):
        log.warning(
            "the database that projects share is still in %s;"
            " to keep using it, set LANEWAY_EMBEDDED=shared",
            cluster,
        )


@asynccontextmanager
async def open_database(
    settings: Settings, *, role: str, announce: bool = True
) -> AsyncIterator[Database]:
    """Opens the database for a command, and closes it afterwards."""
    dsn = await asyncio.to_thread(resolve_dsn, settings, announce=announce)
    database = Database(dsn, settings, role=role)
    try:
        yield database
    finally:
        await database.close()
