"""Detection of a pooler in front of PostgreSQL, remembered for this process.

A transaction pooler runs each transaction in another server process, so prepared statements and
session settings do not persist. It is recognized by the process ids that it invents for its
clients, or because it refuses our startup options.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg import errors as pg

from laneway.observability.safe_logger import SafeLogger
from laneway.store.login import logging_in

if TYPE_CHECKING:
    from laneway.config.settings import Settings

log = SafeLogger("laneway")

CURE: Final = "the database is behind a transaction pooler: set LANEWAY_POOLER=true"
BACKEND_PID: Final = b"select pg_catalog.pg_backend_pid()"
_REFUSED_OPTIONS: Final = "unsupported startup parameter"
_ROUNDS: Final = 5
# DSN → whether it leads to a pooler.
known: dict[str, bool] = {}


def is_pooled(dsn: str, settings: Settings) -> bool:
    """Whether to avoid prepared statements and session settings."""
    return known.get(dsn, False) if settings.pooler is None else settings.pooler


def without_session(options: Mapping[str, Any]) -> dict[str, Any]:
    """The connection options without those that a transaction pooler cannot keep."""
    return {k: v for k, v in options.items() if k != "options"} | {"prepare_threshold": None}


def is_pooler_error(error: BaseException) -> bool:
    """Whether only a transaction pooler causes this error."""
    if isinstance(error, pg.DuplicatePreparedStatement | pg.InvalidSqlStatementName):
        return True
    return isinstance(error, psycopg.OperationalError) and _REFUSED_OPTIONS in str(error)


def mark_pooled(dsn: str, *, quietly: bool = False) -> None:
    """Makes this process avoid session state on this DSN."""
    if not known.get(dsn) and not quietly:
        # Not a warning, which every short command would print; doctor reports it.
        log.info(
            "a pooler is in front of PostgreSQL: Laneway does not prepare statements, and if it"
            " pools by transaction, jobs start at the next poll"
            " (set LANEWAY_LISTEN_DSN to a direct connection to keep wake-ups)"
        )
    known[dsn] = True


async def _connect(dsn: str, options: Mapping[str, Any]) -> AsyncConnection[Any]:
    try:
        with logging_in(dsn):
            return await AsyncConnection.connect(dsn, **options)
    except asyncio.CancelledError as error:
        # Its traceback references the half-open connection, which closes when freed.
        raise error.with_traceback(None)  # noqa: B904 - the same one


async def connect(
    dsn: str, options: Mapping[str, Any], *, may_detect: bool
) -> AsyncConnection[Any]:
    """Opens a connection; behind a pooler, without the options that it cannot keep."""
    if may_detect and known.get(dsn):
        options = without_session(options)
    may_detect = may_detect and dsn not in known
    try:
        conn = await _connect(dsn, options)
    except psycopg.OperationalError as error:
        if not (may_detect and is_pooler_error(error)):
            raise
        mark_pooled(dsn)
        return await _connect(dsn, without_session(options))
    if may_detect:
        try:
            cursor = await conn.execute(BACKEND_PID, prepare=False)
            _remember(dsn, conn, await cursor.fetchone())
        except BaseException:
            await conn.close()
            raise
    return conn


def connect_sync(dsn: str, options: Mapping[str, Any], *, may_detect: bool) -> Connection[Any]:
    """The same for a worker's heartbeat thread; the worker logs the pooler."""
    if may_detect and known.get(dsn):
        options = without_session(options)
    may_detect = may_detect and dsn not in known
    try:
        with logging_in(dsn):
            conn = psycopg.connect(dsn, **options)
    except psycopg.OperationalError as error:
        if not (may_detect and is_pooler_error(error)):
            raise
        mark_pooled(dsn, quietly=True)
        with logging_in(dsn):
            return psycopg.connect(dsn, **without_session(options))
    if may_detect:
        try:
            row = conn.execute(BACKEND_PID, prepare=False).fetchone()
            _remember(dsn, conn, row, quietly=True)
        except BaseException:
            conn.close()
            raise
    return conn


def _remember(
    dsn: str, conn: AsyncConnection[Any] | Connection[Any], row: Any, *, quietly: bool = False
) -> None:
    if row[0] == conn.info.backend_pid:
        known.setdefault(dsn, False)
    else:
        mark_pooled(dsn, quietly=quietly)
        conn.prepare_threshold = None


async def has_pooler(conn: AsyncConnection[Any]) -> bool:
    """Whether the server reports another process id than the client was given."""
    row = await (await conn.execute(BACKEND_PID, prepare=False)).fetchone()
    return row is not None and row[0] != conn.info.backend_pid


async def is_shared(first: AsyncConnection[Any], second: AsyncConnection[Any]) -> bool:
    """Whether two connections change server processes: a transaction pooler, not a session one."""
    seen: tuple[set[int], set[int]] = (set(), set())
    for _ in range(_ROUNDS):
        for conn, pids in zip((first, second), seen, strict=True):
            row = await (await conn.execute(BACKEND_PID, prepare=False)).fetchone()
            pids.add(row[0] if row else 0)
    return len(seen[0] | seen[1]) != 2 or bool(seen[0] & seen[1])
