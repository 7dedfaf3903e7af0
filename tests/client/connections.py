"""Every kind of connection that `conn=` accepts, each opened in a separate transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
)
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import asyncpg  # type: ignore[import-untyped]
import django
import django.conf
import psycopg
import sqlalchemy
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.utils import ConnectionHandler
from django.utils.connection import ConnectionProxy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as async_sqlalchemy

from tests.support.store_client import StoreClient


def hang_up(db: StoreClient) -> None:
    """End the connections of all clients; they notice at the next use."""
    db.conn.execute(
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
        " where datname = current_database() and application_name ~ '^laneway'"
    )


class Sync(NamedTuple):
    conn: Any
    commit: Callable[[], None]
    rollback: Callable[[], None]


class Async(NamedTuple):
    conn: Any
    commit: Callable[[], Awaitable[None]]
    rollback: Callable[[], Awaitable[None]]


def _url(dsn: str, driver: str) -> sqlalchemy.URL:
    parts = urlsplit(dsn)
    query = dict(pair.split("=", 1) for pair in parts.query.split("&") if pair)
    host = parts.hostname or unquote(query.get("host", ""))
    if driver == "psycopg":
        return sqlalchemy.make_url(dsn).set(drivername="postgresql+psycopg")
    return sqlalchemy.URL.create(
        "postgresql+asyncpg",
        unquote(parts.username or "") or None,
        unquote(parts.password or "") or None,
        None,
        None,
        parts.path.lstrip("/"),
        {"host": host, "port": str(parts.port or query.get("port", 5432))},
    )


@contextmanager
def closing_engine(engine: sqlalchemy.Engine) -> Iterator[None]:
    try:
        yield
    finally:
        engine.dispose()


@contextmanager
def _psycopg(dsn: str) -> Iterator[Sync]:
    with psycopg.connect(dsn) as conn:
        yield Sync(conn, conn.commit, conn.rollback)


@contextmanager
def _dict_rows(dsn: str) -> Iterator[Sync]:
    """A connection with unusual rows and cursors."""
    with psycopg.connect(
        dsn,
        row_factory=psycopg.rows.dict_row,
        cursor_factory=psycopg.RawCursor,
    ) as conn:
        yield Sync(conn, conn.commit, conn.rollback)


@contextmanager
def _sqlalchemy_connection(dsn: str) -> Iterator[Sync]:
    engine = sqlalchemy.create_engine(_url(dsn, "psycopg"))
    with closing_engine(engine), engine.connect() as conn:
        yield Sync(conn, conn.commit, conn.rollback)


@contextmanager
def _sqlalchemy_session(dsn: str) -> Iterator[Sync]:
    engine = sqlalchemy.create_engine(_url(dsn, "psycopg"))
    with closing_engine(engine), orm.Session(engine) as session:
        yield Sync(session, session.commit, session.rollback)


@contextmanager
def _scoped_session(dsn: str) -> Iterator[Sync]:
    engine = sqlalchemy.create_engine(_url(dsn, "psycopg"))
    session = orm.scoped_session(orm.sessionmaker(engine))
    with closing_engine(engine):
        try:
            yield Sync(session, session.commit, session.rollback)
        finally:
            session.remove()


def _django_settings(dsn: str) -> dict[str, Any]:
    if not django.conf.settings.configured:
        django.conf.settings.configure(USE_TZ=True)
        django.setup()
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": str(parts.get("port", "")),
    }


@contextmanager
def _django(dsn: str) -> Iterator[Sync]:
    handler = ConnectionHandler({"default": _django_settings(dsn)})
    conn = handler["default"]
    assert isinstance(conn, DatabaseWrapper)
    conn.set_autocommit(False)
    with closing(conn):
        yield Sync(conn, conn.commit, conn.rollback)


@contextmanager
def _django_proxy(dsn: str) -> Iterator[Sync]:
    """The object that `from django.db import connection` provides."""
    handler = ConnectionHandler({"default": _django_settings(dsn)})
    conn = ConnectionProxy(handler, "default")
    conn.set_autocommit(False)
    with closing(conn):
        yield Sync(conn, conn.commit, conn.rollback)


@asynccontextmanager
async def _async_psycopg(dsn: str) -> AsyncIterator[Async]:
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        yield Async(conn, conn.commit, conn.rollback)


@asynccontextmanager
async def _asyncpg(dsn: str) -> AsyncIterator[Async]:
    conn = await asyncpg.connect(dsn)
    try:
        transaction = conn.transaction()
        await transaction.start()
        yield Async(conn, transaction.commit, transaction.rollback)
    finally:
        await conn.close()


@asynccontextmanager
async def _asyncpg_with_codecs(dsn: str) -> AsyncIterator[Async]:
    """A pooled connection that encodes jsonb itself, as many applications do."""
    import json

    async def init(conn: asyncpg.Connection[Any]) -> None:
        await conn.set_type_codec(
            "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
        )

    async with (
        asyncpg.create_pool(dsn, min_size=1, max_size=1, init=init) as pool,
        pool.acquire() as conn,
    ):
        transaction = conn.transaction()
        await transaction.start()
        yield Async(conn, transaction.commit, transaction.rollback)


def _async_session(driver: str) -> Callable[[str], AbstractAsyncContextManager[Async]]:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Async]:
        engine = async_sqlalchemy.create_async_engine(_url(dsn, driver))
        try:
            async with async_sqlalchemy.AsyncSession(engine) as session:
                yield Async(session, session.commit, session.rollback)
        finally:
            await engine.dispose()

    return opened


def _async_connection(driver: str) -> Callable[[str], AbstractAsyncContextManager[Async]]:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Async]:
        engine = async_sqlalchemy.create_async_engine(_url(dsn, driver))
        try:
            async with engine.connect() as conn:
                yield Async(conn, conn.commit, conn.rollback)
        finally:
            await engine.dispose()

    return opened


SYNC: dict[str, Callable[[str], AbstractContextManager[Sync]]] = {
    "psycopg": _psycopg,
    "psycopg with raw cursors": _dict_rows,
    "sqlalchemy connection": _sqlalchemy_connection,
    "sqlalchemy session": _sqlalchemy_session,
    "sqlalchemy scoped_session": _scoped_session,
    "django": _django,
    "django proxy": _django_proxy,
}
ASYNC: dict[str, Callable[[str], AbstractAsyncContextManager[Async]]] = {
    "psycopg async": _async_psycopg,
    "asyncpg": _asyncpg,
    "asyncpg pooled, own jsonb codec": _asyncpg_with_codecs,
    "sqlalchemy async session over psycopg": _async_session("psycopg"),
    "sqlalchemy async session over asyncpg": _async_session("asyncpg"),
    "sqlalchemy async connection over psycopg": _async_connection("psycopg"),
    "sqlalchemy async connection over asyncpg": _async_connection("asyncpg"),
}
