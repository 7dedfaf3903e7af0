"""Statements on the caller's connection: inside its transaction, never committing.

One class per library, chosen by the names of the connection's classes, so that no library is
imported here. On a sync connection `run` and `copy` never suspend: `run_now` drives them without an
event loop, in the thread of the connection.
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
from laneway.store.driver_errors import missing_right
from laneway.store.statement import Row, Statement, sql

T = TypeVar("T")

ACCEPTED: Final = (
    "psycopg Connection and AsyncConnection, asyncpg Connection, SQLAlchemy Session, Connection, "
    "AsyncSession and AsyncConnection, Django connection"
)
_MISSING_SCHEMA: Final = frozenset({"3F000", "42P01", "42883", "42703"})
_PLACEHOLDER: Final = re.compile(r"%(?:\((\w+)\)s|%)")


class CallerConnection(ABC):
    """A connection that the caller opened and commits."""

    is_async: ClassVar[bool]

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def run(self, statement: Statement[T]) -> T:
        """Runs a statement in the caller's transaction.

        Connection and transaction errors of the caller's library pass unchanged: the owner of the
        transaction knows how to retry it.
        """
        try:
            rows = await self._rows(statement)
        except Exception as error:
            translated = _translate(error, statement.name)
            if translated is None:
                raise
            raise translated from error
        return statement.decode([[_plain(value) for value in row] for row in rows])

    @property
    def can_copy(self) -> bool:
        """Whether `copy` can be called."""
        return False

    async def copy(self, text: str, data: Iterable[bytes]) -> None:
        """Sends the data of a COPY … FROM STDIN, part by part."""
        raise NotImplementedError

    @abstractmethod
    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]: ...


class _Psycopg(CallerConnection):
    is_async = False

    # Not conn.cursor(): the caller may have set a cursor factory with other placeholders.
    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        with psycopg.Cursor(self._conn, row_factory=tuple_row) as cursor:
            cursor.execute(statement.text, statement.params, binary=True)
            if not self.can_copy:
                with self._conn.pipeline() as pipeline:
                    pipeline.sync()
            return cursor.fetchall() if cursor.description else []

    @property
    def can_copy(self) -> bool:
        # A pipeline does not support COPY, and returns results only after a sync.
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
        # Django's caches use the same proxy class.
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
    """Wraps the caller's connection; raises TypeError for an unsupported class."""
    for cls in type(conn).__mro__:
        kind = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if kind is not None:
            return kind(conn)
    found = f"{type(conn).__module__}.{type(conn).__qualname__}"
    raise TypeError(f"conn: unsupported type {found}; accepted: {ACCEPTED}")


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never suspends, in this thread and without an event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise RuntimeError("work on a sync connection tried to wait for an event loop")


@cache
def numbered(name: str) -> tuple[str, tuple[str, ...]]:
    """The SQL with $1, $2 …, and the parameter names in that order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        return f"${names.setdefault(found[1], len(names) + 1)}"

    text = _PLACEHOLDER.sub(number, sql(name))
    # Cast through text: callers often register a jsonb codec on their connection.
    return re.sub(r"(\$\d+)::jsonb", r"\1::text::jsonb", text), tuple(names)


@cache
def clause(name: str) -> Any:
    from sqlalchemy import text  # only called with a SQLAlchemy connection

    # In parentheses: SQLAlchemy does not recognize a parameter directly before `::type`.
    return text(_PLACEHOLDER.sub(lambda m: f"(:{m[1]})" if m[1] else "%", sql(name)))


def _check_postgresql(vendor: str) -> None:
    if vendor != "postgresql":
        raise TypeError(
            f"conn: must be connected to PostgreSQL, not {vendor}; accepted: {ACCEPTED}"
        )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        # Text from a session with client_encoding SQL_ASCII; none of these statements reads bytea.
        return value.decode()
    if isinstance(value, list):
        return [_plain(part) for part in value]
    # asyncpg has its own UUID class.
    return UUID(int=value.int) if isinstance(value, UUID) else value


def _translate(error: BaseException, statement: str) -> LanewayError | None:
    """The Laneway error for a database error, whichever library wrapped it."""
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
    if inner.sqlstate == "42501":
        return missing_right(message, "NAME", statement)
    if inner.sqlstate.startswith("22"):
        return InvalidInput("payload", f"PostgreSQL refuses it: {message}")
    return None
