"""Statements on a connection the caller owns: inside its transaction, never committing.

One class per library, told apart by the names of the connection's classes, so that none of the
libraries is imported here. On a sync connection `run` and `copy` never suspend: they may be driven
without an event loop (`run_now`), in the thread the connection belongs to.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Final, TypeVar, cast
from uuid import UUID

import psycopg
from psycopg.pq import PipelineStatus
from psycopg.rows import tuple_row

from laneway.errors import InvalidInput, LanewayError, SchemaMismatch
from laneway.store.statement import Row, Statement, sql

T = TypeVar("T")

ACCEPTED: Final = (
    "psycopg Connection and AsyncConnection, asyncpg Connection, SQLAlchemy Session, Connection, "
    "AsyncSession and AsyncConnection, Django connection"
)
_MISSING_SCHEMA: Final = frozenset({"3F000", "42P01", "42883", "42703"})
_PLACEHOLDER: Final = re.compile(r"%(?:\((\w+)\)s|%)")


class CallerConnection(ABC):
    """A connection of the caller."""

    is_async: ClassVar[bool]

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def run(self, statement: Statement[T]) -> T:
        """Runs a statement in the caller's transaction.

        What the caller's own library says of the connection or the transaction passes as it is:
        whoever owns the transaction knows how to retry it.
        """
        try:
            rows = await self._rows(statement)
        except Exception as error:
            told = _told(error)
            if told is None:
                raise
            raise told from error
        return statement.decode([[_plain(value) for value in row] for row in rows])

    @property
    def can_copy(self) -> bool:
        """Whether `copy` works."""
        return False

    async def copy(self, text: str, data: Iterable[bytes]) -> None:
        """Sends the data of a COPY … FROM STDIN, part by part."""
        raise NotImplementedError

    @abstractmethod
    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]: ...


class _Psycopg(CallerConnection):
    is_async = False

    # Not conn.cursor(): the caller may have set a factory with other placeholders.
    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        with psycopg.Cursor(self._conn, row_factory=tuple_row) as cursor:
            cursor.execute(statement.text, statement.params, binary=True)
            if not self.can_copy:
                with self._conn.pipeline() as pipeline:
                    pipeline.sync()
            return cursor.fetchall() if cursor.description else []

    @property
    def can_copy(self) -> bool:
        # In a pipeline there is no COPY, and answers come only with a sync.
        return bool(self._conn.pgconn.pipeline_status == PipelineStatus.OFF)

    async def copy(self, text: str, data: Iterable[bytes]) -> None:
        with (
            psycopg.Cursor(self._conn) as cursor,
            cursor.copy(text) as copy,
        ):
            for part in data:
                copy.write(part)


class _AsyncPsycopg(_Psycopg):
    is_async = True

    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        async with psycopg.AsyncCursor(self._conn, row_factory=tuple_row) as cursor:
            await cursor.execute(statement.text, statement.params, binary=True)
            if not self.can_copy:
                async with self._conn.pipeline() as pipeline:
                    await pipeline.sync()
            return await cursor.fetchall() if cursor.description else []

    async def copy(self, text: str, data: Iterable[bytes]) -> None:
        async with (
            psycopg.AsyncCursor(self._conn) as cursor,
            cursor.copy(text) as copy,
        ):
            for part in data:
                await copy.write(part)


class _Asyncpg(CallerConnection):
    is_async = True

    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        text, names = numbered(statement.name)
        rows: list[Row] = await self._conn.fetch(text, *(statement.params[n] for n in names))
        return rows


class _SqlAlchemy(CallerConnection):
    is_async = False

    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        conn = self._conn
        if not hasattr(conn, "dialect"):
            conn = conn.connection()
        _check_postgresql(conn.dialect.name)
        result = conn.execute(clause(statement.name), dict(statement.params))
        return cast("Iterable[Row]", result.fetchall() if result.returns_rows else [])


class _AsyncSqlAlchemy(CallerConnection):
    is_async = True

    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        conn = self._conn
        if not hasattr(conn, "dialect"):
            conn = await conn.connection()
        _check_postgresql(conn.dialect.name)
        result = await conn.execute(clause(statement.name), dict(statement.params))
        return cast("Iterable[Row]", result.fetchall() if result.returns_rows else [])


class _Django(CallerConnection):
    is_async = False

    def __init__(self, conn: Any) -> None:
        # Django's caches hide behind the same proxy class.
        _check_postgresql(getattr(conn, "vendor", type(conn).__name__))
        super().__init__(conn)

    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        with self._conn.cursor() as cursor:
            cursor.execute(statement.text, dict(statement.params))
            return cast("Iterable[Row]", cursor.fetchall() if cursor.description else [])


_KINDS: Final[Mapping[tuple[str, str], type[CallerConnection]]] = {
    ("psycopg", "Connection"): _Psycopg,
    ("psycopg", "AsyncConnection"): _AsyncPsycopg,
    ("asyncpg", "Connection"): _Asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _Asyncpg,
    ("sqlalchemy", "Connection"): _SqlAlchemy,
    ("sqlalchemy", "Session"): _SqlAlchemy,
    ("sqlalchemy", "scoped_session"): _SqlAlchemy,
    ("sqlalchemy", "AsyncConnection"): _AsyncSqlAlchemy,
    ("sqlalchemy", "AsyncSession"): _AsyncSqlAlchemy,
    ("sqlalchemy", "async_scoped_session"): _AsyncSqlAlchemy,
    ("django", "BaseDatabaseWrapper"): _Django,
    ("django", "ConnectionProxy"): _Django,
}


def borrow(conn: object) -> CallerConnection:
    """The caller's connection, ready to run statements; TypeError when it is none we know."""
    for cls in type(conn).__mro__:
        kind = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if kind is not None:
            return kind(conn)
    found = f"{type(conn).__module__}.{type(conn).__qualname__}"
    raise TypeError(f"conn cannot be a {found}; it takes: {ACCEPTED}")


async def run_foreign(conn: object, statement: Statement[T]) -> T:
    """Runs a statement on a connection of the caller, in its transaction."""
    return await borrow(conn).run(statement)


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Runs what never suspends, without an event loop and in this thread."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise RuntimeError("work on a sync connection was about to wait for an event loop")


@cache
def numbered(name: str) -> tuple[str, tuple[str, ...]]:
    """The text with $1, $2 …, and the parameters in that order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        return f"${names.setdefault(found[1], len(names) + 1)}"

    text = _PLACEHOLDER.sub(number, sql(name))
    # By way of text: callers often teach their connection to encode jsonb itself.
    return re.sub(r"(\$\d+)::jsonb", r"\1::text::jsonb", text), tuple(names)


@cache
def clause(name: str) -> Any:
    from sqlalchemy import text  # only ever reached with a connection of SQLAlchemy's at hand

    # In parentheses: SQLAlchemy does not see a parameter that `::type` follows directly.
    return text(_PLACEHOLDER.sub(lambda m: f"(:{m[1]})" if m[1] else "%", sql(name)))


def _check_postgresql(vendor: str) -> None:
    if vendor != "postgresql":
        raise TypeError(f"conn must be connected to PostgreSQL, not {vendor}; it takes: {ACCEPTED}")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        # Text, in a session whose client_encoding is SQL_ASCII; none of these reads bytea.
        return value.decode()
    if isinstance(value, list):
        return [_plain(part) for part in value]
    # asyncpg has a UUID class of its own.
    return UUID(int=value.int) if isinstance(value, UUID) else value


def _told(error: BaseException) -> LanewayError | None:
    """Our error for what the schema refuses or lacks, whichever library wrapped it."""
    inner: Any = None
    seen: Any = error
    while seen is not None:
        if isinstance(getattr(seen, "sqlstate", None), str):
            inner = seen
        seen = getattr(seen, "orig", None) or seen.__cause__
    if inner is None:
        return None
    message = (str(inner).strip() or type(inner).__name__).splitlines()[0]
    if inner.sqlstate == "LW001":
        field, _, rule = message.partition(": ")
        return InvalidInput(field, rule or message)
    if inner.sqlstate in _MISSING_SCHEMA:
        return SchemaMismatch(
            f"the schema laneway is missing or of another version ({message}): "
            "run `laneway db migrate`"
        )
    if inner.sqlstate.startswith("22"):
        return InvalidInput("payload", f"PostgreSQL refuses it: {message}")
    return None
