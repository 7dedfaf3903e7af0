"""The connection pool of a process, and the two ways to run a Statement."""

from __future__ import annotations

import asyncio
import select
import time
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from laneway import forks
from laneway.domain.redaction import redact
from laneway.errors import ConfigError, DatabaseUnavailable, LanewayError, MissingRight
from laneway.store import local_notify, pooler, row_security, silence
from laneway.store.bounds import bounded_transaction, session_bounds
from laneway.store.connection_slots import ConnectionSlots
from laneway.store.driver_errors import field_of, reading, translate, translated
from laneway.store.server_settings import ENCODING, startup_options
from laneway.store.silence import SilenceWatch
from laneway.store.statement import Row, Statement

if TYPE_CHECKING:
    # The heartbeat process starts in half the time without it.
    from laneway.config.settings import Settings

# Size from which a result is decoded in a thread, in characters.
_LARGE: Final = 256 * 1024

T = TypeVar("T")
AsyncConn = AsyncConnection[tuple[Any, ...]]
SILENT: Final = "the connection to the database stopped responding and was closed"


def connection_options(dsn: str, settings: Settings, role: str) -> dict[str, Any]:
    """Options of every connection Laneway opens: a name, a timeout, detection of dead peers.

    Settings in the DSN win; its `options` are kept besides ours.
    """
    try:
        in_dsn = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # The driver's message quotes the DSN, which may hold a password.
        raise ConfigError("database_url: must be a URL or key=value pairs") from None
    options: dict[str, Any] = {
        "application_name": f"laneway {role}",
        "connect_timeout": settings.connect_timeout,
        "keepalives_idle": 4,
        "keepalives_interval": 2,
        "keepalives_count": 2,
        "tcp_user_timeout": 8_000,
        "target_session_attrs": "read-write",
    }
    options = {
        **{name: value for name, value in options.items() if name not in in_dsn},
        "client_encoding": ENCODING,
        "autocommit": True,
        "prepare_threshold": 0,
        "options": startup_options(session_bounds(settings), str(in_dsn.get("options") or "")),
    }
    if not pooler.is_pooled(dsn, settings):
        return options
    if "application_name" in options:
        options["application_name"] = silence.unique_name(options["application_name"])
    return pooler.without_session(options)


async def connect(dsn: str, settings: Settings, role: str) -> AsyncConn:
    """Opens a connection; behind a pooler it does not rely on session state."""
    was_pooled = pooler.is_pooled(dsn, settings)
    options = connection_options(dsn, settings, role)
    conn = await pooler.connect(dsn, options, may_detect=settings.pooler is None)
    if pooler.is_pooled(dsn, settings) and not was_pooled:
        # This connection revealed the pooler. Reconnect with a name that identifies its session.
        await conn.close()
        conn = await connect(dsn, settings, role)
    return cast(AsyncConn, conn)


class Database:
    """A bounded pool: a connection per statement, opened when needed, closed when it fails.

    It never waits for a server that is down: it raises at once and the caller decides when to
    retry, so that work continues as soon as the server is back.
    """

    # Whether its statements are part of a transaction that the caller ends.
    is_joined: ClassVar[bool] = False

    def __init__(
        self,
        dsn: str | Callable[[], str],
        settings: Settings,
        *,
        role: str = "client",
        size: int | None = None,
        longest_wait_s: float | None = None,
    ) -> None:
        """`longest_wait_s`: how long a caller waits for a free connection."""
        self._given_dsn = dsn
        self.settings = settings
        self.role = role
        self.size = size or settings.pool_size
        self._slots = ConnectionSlots(self.size, longest_wait_s)
        # Each with the time at which it last worked.
        self._idle: list[tuple[float, AsyncConn]] = []
        self._opened: weakref.WeakSet[AsyncConn] = weakref.WeakSet()
        forks.own(self)
        self._is_restricted: bool | None = None
        self.is_closed = False

    @cached_property
    def dsn(self) -> str:
        """The connection string; it may take a while if it was given as a function."""
        dsn = self._given_dsn if isinstance(self._given_dsn, str) else self._given_dsn()
        redact.remember([dsn, self.settings.listen_dsn])
        return dsn

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler is known to be in front of PostgreSQL."""
        return pooler.is_pooled(self.dsn, self.settings)

    @property
    def idle(self) -> int:
        """Open connections that are not in use."""
        return len(self._idle)

    @property
    def in_use(self) -> int:
        return min(self._slots.callers, self.size)

    @property
    def waiting(self) -> int:
        """Callers that wait for a connection."""
        return self._slots.callers - self.in_use

    def fds(self) -> Iterable[int]:
        """The sockets of its connections."""
        return [conn.fileno() for conn in self._opened if not conn.closed]

    async def close(self) -> None:
        self.is_closed = True
        await self._drop_idle()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        """A connection of the pool, for several statements or a transaction."""
        with translated():
            async with self._slots:
                conn = await self._acquire()
                watch = SilenceWatch(conn, self.settings, self._probe, is_pooled=self.is_pooled)
                try:
                    async with watch:
                        yield conn
                except BaseException as error:
                    if self.settings.pooler is None and _is_pooler_error(error):
                        pooler.mark_pooled(self.dsn)
                    # Close on half-read results, open transactions and demoted servers.
                    await self._release(conn, is_sound=_is_refusal(error))
                    if watch.is_silent:
                        silence.mark_silent(self.dsn, watch.began)
                        await self._drop_idle()
                        raise DatabaseUnavailable(SILENT) from error
                    if isinstance(error, MissingRight):
                        raise await self._with_command(error) from error
                    raise
                await self._release(conn, is_sound=True)

    async def _probe(self) -> AsyncConn:
        return await connect(self.dsn, self.settings, "probe")

    async def _with_command(self, error: MissingRight) -> MissingRight:
        # Imported late: the heartbeat process starts faster without it.
        from laneway.store.missing_rights import with_command

        # A separate connection: a transaction of the other may have failed.
        with suppress(psycopg.Error, LanewayError):
            conn = await connect(self.dsn, self.settings, self.role)
            try:
                return await with_command(error, conn)
            finally:
                await conn.close()
        return error

    async def _drop_idle(self) -> None:
        while self._idle:
            await self._idle.pop()[1].close()

    async def _release(self, conn: AsyncConn, *, is_sound: bool) -> None:
        is_idle = conn.info.transaction_status == TransactionStatus.IDLE
        if is_sound and is_idle and not self.is_closed:
            self._idle.append((time.monotonic(), conn))
        else:
            await conn.close()

    async def _acquire(self) -> AsyncConn:
        if self.is_closed:
            raise DatabaseUnavailable("this Laneway instance is closed")
        while self._idle:
            proven_at, conn = self._idle.pop()
            is_dead = conn.closed or silence.is_suspect(self.dsn, proven_at)
            if not is_dead and not _has_input(conn):
                return conn
            await conn.close()
        if "dsn" not in self.__dict__:
            await asyncio.to_thread(lambda: self.dsn)
        conn = await connect(self.dsn, self.settings, self.role)
        self._opened.add(conn)
        return conn

    async def run(self, statement: Statement[T]) -> T:
        async with self.connection() as conn:
            result = await run_on(conn, statement)
        local_notify.publish(statement.name)
        return result

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction for several statements: all are committed or none."""
        async with self.connection() as conn, bounded_transaction(conn, self.settings):
            yield Transaction(conn)
        local_notify.publish()

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[Database]:
        """A database whose operations share one transaction: all are committed or none."""
        async with self.connection() as conn, bounded_transaction(conn, self.settings):
            yield _Joined(self, conn)
        local_notify.publish()

    async def within(self, workspaces: Collection[str] | None) -> Database:
        """This database, restricted to these workspaces; None: unrestricted.

        It restricts only roles that row-level security applies to: see `laneway db grants`.
        """
        if workspaces is None:
            return self
        if self._is_restricted is None:
            self._is_restricted = await self.run(row_security.applies())
        return _Restricted(self, workspaces) if self._is_restricted else self


class _Joined(Database):
    """Runs all statements one by one on one connection.

    Its transactions join the open one; a nested `joined` is a savepoint.
    """

    is_joined = True

    def __init__(self, parent: Database, conn: AsyncConn) -> None:
        super().__init__(lambda: parent.dsn, parent.settings, size=1)
        self._conn = conn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        with translated():
            yield self._conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.connection() as conn:
            yield Transaction(conn)


class _Restricted(Database):
    """Runs every statement in a transaction that first sets the visible workspaces.

    The setting is local to the transaction: behind a pooler the session serves other clients too.
    """

    def __init__(self, parent: Database, workspaces: Collection[str]) -> None:
        super().__init__(lambda: parent.dsn, parent.settings, size=1)
        self._parent = parent
        self._restrict = row_security.restrict(workspaces)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        async with self._parent.connection() as conn, bounded_transaction(conn, self.settings):
            await run_on(conn, self._restrict)
            yield conn

    async def run(self, statement: Statement[T]) -> T:
        async with self._parent.connection() as conn:
            # Statements that a pipeline sends before it waits form one transaction.
            async with conn.pipeline():
                restriction = await _send(conn, self._restrict)
                cursor = await _send(conn, statement)
            await restriction.close()
            return await _read(cursor, statement)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.connection() as conn:
            yield Transaction(conn)

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[Database]:
        async with self.connection() as conn:
            yield _Joined(self, conn)


class Runner(Protocol):
    """Runs a Statement: a database, or one of its transactions."""

    async def run(self, statement: Statement[T]) -> T: ...


class Transaction:
    """Runs statements on one connection; `Database.transaction` begins and ends it."""

    def __init__(self, conn: AsyncConn) -> None:
        self._conn = conn

    async def run(self, statement: Statement[T]) -> T:
        return await run_on(self._conn, statement)


def _is_refusal(error: BaseException) -> bool:
    """Whether only the request was wrong, so that the connection can be used again."""
    if not isinstance(error, LanewayError):
        translation = translate(error) if isinstance(error, psycopg.Error) else None
        return translation is not None and _is_refusal(translation)
    return not isinstance(error, DatabaseUnavailable)


def _is_pooler_error(error: BaseException) -> bool:
    cause = error.__cause__
    return pooler.is_pooler_error(error) or (cause is not None and pooler.is_pooler_error(cause))


def _has_input(conn: AsyncConn) -> bool:
    """Whether an idle connection has input: the server only writes to it when it closes it."""
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def run_on(conn: AsyncConnection[Any], statement: Statement[T]) -> T:
    """Runs a statement on an async connection, Laneway's or the caller's."""
    with translated(field_of(statement.params), conn, statement.name):
        return await _read(await _send(conn, statement), statement)


async def _send(
    conn: AsyncConnection[Any], statement: Statement[Any]
) -> AsyncCursor[tuple[Any, ...]]:
    cursor = conn.cursor(binary=True, row_factory=psycopg.rows.tuple_row)
    await cursor.execute(statement.text.encode(), statement.params)
    return cursor


async def _read(cursor: AsyncCursor[tuple[Any, ...]], statement: Statement[T]) -> T:
    with reading(statement.name):
        rows = await cursor.fetchall() if _has_rows(cursor.pgresult) else []
    await cursor.close()
    result = cast("list[Row]", rows)
    if statement.may_be_large and _is_large(result):
        return await asyncio.to_thread(statement.decode, result)
    return statement.decode(result)


def _is_large(rows: list[Row]) -> bool:
    return sum(len(value) for row in rows for value in row if type(value) in (str, bytes)) > _LARGE


def _has_rows(result: PGresult | None) -> bool:
    # Not `description`: it describes every column, a third of the cost of a claim here.
    return result is not None and result.nfields > 0


def run_sync(conn: Connection[Any], statement: Statement[T]) -> T:
    """Runs a statement on a sync connection."""
    with (
        translated(field_of(statement.params), conn, statement.name),
        conn.cursor(binary=True, row_factory=psycopg.rows.tuple_row) as cursor,
    ):
        cursor.execute(statement.text.encode(), statement.params)
        with reading(statement.name):
            rows = cursor.fetchall() if _has_rows(cursor.pgresult) else []
        return statement.decode(cast("list[Row]", rows))
