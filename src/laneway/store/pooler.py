"""Finds out whether a pooler stands between us and PostgreSQL, and remembers it for this process.

A transaction pooler hands each transaction to another server process: prepared statements and
settings of a session are then somebody else's. It gives its clients process numbers of its own
making, and many refuse our startup options; either gives it away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg import errors as pg

from laneway.store.login import logging_in

if TYPE_CHECKING:
    from laneway.config.settings import Settings

log = logging.getLogger("laneway")

CURE: Final = "a transaction pooler stands between: set LANEWAY_POOLER=true"
WHICH_PROCESS: Final = b"select pg_catalog.pg_backend_pid()"
_REFUSED_OPTIONS: Final = "unsupported startup parameter"
_ROUNDS: Final = 5
# DSN → whether a pooler stands between.
known: dict[str, bool] = {}


def is_pooled(dsn: str, settings: Settings) -> bool:
    """Whether to do without prepared statements and settings of the session."""
    return known.get(dsn, False) if settings.pooler is None else settings.pooler


def without_session(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same connection options, but for what a transaction pooler cannot keep."""
    return {k: v for k, v in options.items() if k != "options"} | {"prepare_threshold": None}


def shows(error: BaseException) -> bool:
    """Whether the error is one that only a transaction pooler causes."""
    if isinstance(error, pg.DuplicatePreparedStatement | pg.InvalidSqlStatementName):
        return True
    return isinstance(error, psycopg.OperationalError) and _REFUSED_OPTIONS in str(error)


def note(dsn: str, *, quietly: bool = False) -> None:
    """From now on this process does without a session here."""
    if not known.get(dsn) and not quietly:
        # Not a warning, which every short command would print: it works, and doctor says it.
        log.info(
            "a pooler stands between Laneway and PostgreSQL: Laneway prepares no statements there,"
            " and where it pools by transaction jobs start at the next poll"
            " (LANEWAY_LISTEN_DSN=<a direct connection> keeps wake-ups)"
        )
    known[dsn] = True


async def _connect(dsn: str, options: Mapping[str, Any]) -> AsyncConnection[Any]:
    try:
        with logging_in(dsn):
            return await AsyncConnection.connect(dsn, **options)
    except asyncio.CancelledError as error:
        # Its traceback holds the connection that is half made, which closes when nothing does.
        raise error.with_traceback(None)  # noqa: B904 - the same one


async def connect(dsn: str, options: Mapping[str, Any], *, may_ask: bool) -> AsyncConnection[Any]:
    """A connection with these options, or without what a pooler that is met cannot keep."""
    if may_ask and known.get(dsn):
        options = without_session(options)
    may_ask = may_ask and dsn not in known
    try:
        conn = await _connect(dsn, options)
    except psycopg.OperationalError as error:
        if not (may_ask and shows(error)):
            raise
        note(dsn)
        return await _connect(dsn, without_session(options))
    if may_ask:
        try:
            cursor = await conn.execute(WHICH_PROCESS, prepare=False)
            _compare(dsn, conn, await cursor.fetchone())
        except BaseException:
            await conn.close()
            raise
    return conn


def connect_sync(dsn: str, options: Mapping[str, Any], *, may_ask: bool) -> Connection[Any]:
    """The same for a thread beside a worker, which says it."""
    if may_ask and known.get(dsn):
        options = without_session(options)
    may_ask = may_ask and dsn not in known
    try:
        with logging_in(dsn):
            conn = psycopg.connect(dsn, **options)
    except psycopg.OperationalError as error:
        if not (may_ask and shows(error)):
            raise
        note(dsn, quietly=True)
        with logging_in(dsn):
            return psycopg.connect(dsn, **without_session(options))
    if may_ask:
        try:
            _compare(dsn, conn, conn.execute(WHICH_PROCESS, prepare=False).fetchone(), quietly=True)
        except BaseException:
            conn.close()
            raise
    return conn


def _compare(
    dsn: str, conn: AsyncConnection[Any] | Connection[Any], row: Any, *, quietly: bool = False
) -> None:
    if row[0] == conn.info.backend_pid:
        known.setdefault(dsn, False)
    else:
        note(dsn, quietly=quietly)
        conn.prepare_threshold = None


async def is_between(conn: AsyncConnection[Any]) -> bool:
    """Whether the server has another number for its process than the client was given."""
    row = await (await conn.execute(WHICH_PROCESS, prepare=False)).fetchone()
    return row is not None and row[0] != conn.info.backend_pid


async def is_shared(first: AsyncConnection[Any], second: AsyncConnection[Any]) -> bool:
    """Whether two connections change server processes: a pooler by transaction, not by session."""
    seen: tuple[set[int], set[int]] = (set(), set())
    for _ in range(_ROUNDS):
        for conn, pids in zip((first, second), seen, strict=True):
            row = await (await conn.execute(WHICH_PROCESS, prepare=False)).fetchone()
            pids.add(row[0] if row else 0)
    return len(seen[0] | seen[1]) != 2 or bool(seen[0] & seen[1])
