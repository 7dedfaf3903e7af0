"""Database libraries in whose transactions handlers finish jobs; each is loaded on first use."""

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

import psycopg


class Own(NamedTuple):
    """A transaction of the application."""

    conn: Any
    execute: Callable[[str], object]
    commit: Callable[[], None]
    rollback: Callable[[], None]


class AsyncOwn(NamedTuple):
    conn: Any
    execute: Callable[[str], Awaitable[object]]
    commit: Callable[[], Awaitable[None]]
    rollback: Callable[[], Awaitable[None]]


@contextmanager
def _psycopg(dsn: str) -> Iterator[Own]:
    with closing(psycopg.connect(dsn)) as conn:
        yield Own(conn, lambda text: conn.execute(text.encode()), conn.commit, conn.rollback)


@contextmanager
def _sqlalchemy(dsn: str) -> Iterator[Own]:
    import sqlalchemy
    from sqlalchemy.orm import Session

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(dsn),
        poolclass=sqlalchemy.NullPool,
    )
    with Session(engine) as session:
        yield Own(
            session,
            lambda text: session.execute(sqlalchemy.text(text)),
            session.commit,
            session.rollback,
        )


@contextmanager
def _django(dsn: str) -> Iterator[Own]:
    import django
    from django.conf import settings
    from django.db.utils import ConnectionHandler

    if not settings.configured:
        settings.configure(USE_TZ=True)
        django.setup()
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    handler = ConnectionHandler(
        {
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "PORT": str(parts.get("port", "")),
                **{theirs: parts.get(ours) or "" for theirs, ours in names.items()},
            }
        }
    )
    conn: Any = handler["default"]
    conn.set_autocommit(False)

    def execute(text: str) -> None:
        with conn.cursor() as cursor:
            cursor.execute(text)

    with closing(conn):
        yield Own(conn, execute, conn.commit, conn.rollback)


@asynccontextmanager
async def _psycopg_async(dsn: str) -> AsyncIterator[AsyncOwn]:
    conn = await psycopg.AsyncConnection.connect(dsn)
    try:
        yield AsyncOwn(conn, lambda text: conn.execute(text.encode()), conn.commit, conn.rollback)
    finally:
        await conn.close()


@asynccontextmanager
async def _asyncpg(dsn: str) -> AsyncIterator[AsyncOwn]:
    import asyncpg  # type: ignore[import-untyped]

    conn = await asyncpg.connect(dsn)
    try:
        transaction = conn.transaction()
        await transaction.start()
        yield AsyncOwn(conn, conn.execute, transaction.commit, transaction.rollback)
    finally:
        await conn.close()


@asynccontextmanager
async def _sqlalchemy_async(dsn: str) -> AsyncIterator[AsyncOwn]:
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    async def connect() -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(dsn)

    engine = create_async_engine(
        "postgresql+psycopg://", async_creator=connect, poolclass=sqlalchemy.NullPool
    )
    async with AsyncSession(engine) as session:
        yield AsyncOwn(
            session,
            lambda text: session.execute(sqlalchemy.text(text)),
            session.commit,
            session.rollback,
        )


SYNC: dict[str, Callable[[str], AbstractContextManager[Own]]] = {
    "psycopg": _psycopg,
    "sqlalchemy": _sqlalchemy,
    "django": _django,
}
ASYNC: dict[str, Callable[[str], AbstractAsyncContextManager[AsyncOwn]]] = {
    "psycopg_async": _psycopg_async,
    "asyncpg": _asyncpg,
    "sqlalchemy_async": _sqlalchemy_async,
}
