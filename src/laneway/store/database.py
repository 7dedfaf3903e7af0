"""The connection pool of a process, and the two ways to run a Statement."""

from __future__ import annotations

import asyncio
import select
import time
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from laneway import forks
from laneway.domain.redaction import redact
from laneway.errors import ConfigError, DatabaseUnavailable, LanewayError
from laneway.store import local_notify, pooler, row_security, silence
from laneway.store.bounds import bounded_transaction, session_bounds
from laneway.store.connection_slots import ConnectionSlots
from laneway.store.failures import field_of, reading, translate, translated
from laneway.store.server_settings import ENCODING, startup_options
from laneway.store.silence import Watch
from laneway.store.statement import Row, Statement

if TYPE_CHECKING:
    # The heartbeat process starts in half the time without it.
    from laneway.config.settings import Settings

# Text of an answer that is read in a thread.
_LARGE: Final = 256 * 1024

T = TypeVar("T")
AsyncConn = AsyncConnection[tuple[Any, ...]]
SILENT: Final = "the connection to the database went silent and was given up"


def connection_options(dsn: str, settings: Settings, role: str) -> dict[str, Any]:
    """Options of every connection Laneway opens: a name, a deadline, detection of dead peers.

    What the DSN says itself wins; its `options` are kept beside ours.
    """
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # Its message repeats what it stumbled over, which may be a password.
        raise ConfigError("database_url: is neither a URL nor key=value pairs") from None
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
        **{name: value for name, value in options.items() if name not in given},
        "client_encoding": ENCODING,
        "autocommit": True,
        "prepare_threshold": 0,
        "options": startup_options(session_bounds(settings), str(given.get("options") or "")),
    }
    if not pooler.is_pooled(dsn, settings):
        return options
    if "application_name" in options:
        options["application_name"] = silence.unique_name(options["application_name"])
    return pooler.without_session(options)


async def connect(dsn: str, settings: Settings, role: str) -> AsyncConn:
    """A connection of ours, which does without a session where a pooler is met."""
    was_pooled = pooler.is_pooled(dsn, settings)
    options = connection_options(dsn, settings, role)
    conn = await pooler.connect(dsn, options, may_ask=settings.pooler is None)
    if pooler.is_pooled(dsn, settings) and not was_pooled:
        # The first that met it: now with a name by which its session can be found.
        await conn.close()
        conn = await connect(dsn, settings, role)
    return cast(AsyncConn, conn)


class Database:
    """A bounded pool: a connection per statement, opened when needed, dropped when it fails.

    It never waits for a server that is down: the caller hears of it at once and decides when to
    try again, so that work goes on as soon as the server is back.
    """

    # Whether its statements are part of a transaction that somebody else ends.
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
        """`longest_wait_s`: how long a caller waits for a connection that others use."""
        self._given_dsn = dsn
        self.settings = settings
        self.role = role
        self.size = size or settings.pool_size
        self._free = ConnectionSlots(self.size, longest_wait_s)
        # With the time at which each was last known to work.
        self._idle: list[tuple[float, AsyncConn]] = []
        self._made: weakref.WeakSet[AsyncConn] = weakref.WeakSet()
        forks.own(self)
        self._is_bound: bool | None = None
        self.is_closed = False

    @cached_property
    def dsn(self) -> str:
        """What it connects to; finding out may take a while when it was given as a function."""
        dsn = self._given_dsn if isinstance(self._given_dsn, str) else self._given_dsn()
        redact.remember([dsn, self.settings.listen_dsn])
        return dsn

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler stands between, as far as is known."""
        return pooler.is_pooled(self.dsn, self.settings)

    @property
    def idle(self) -> int:
        """Connections that are open and in nobody's hands."""
        return len(self._idle)

    @property
    def in_use(self) -> int:
        return min(self._free.asked, self.size)

    @property
    def waiting(self) -> int:
        """Who waits for a connection."""
        return self._free.asked - self.in_use

    def fds(self) -> Iterable[int]:
        """The sockets of its connections."""
        return [conn.fileno() for conn in self._made if not conn.closed]

    async def close(self) -> None:
        self.is_closed = True
        await self._drop_idle()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        """A connection of the pool, for several statements or a transaction of ours."""
        with translated():
            async with self._free:
                conn = await self._take()
                watch = Watch(conn, self.settings, self._probe, is_pooled=self.is_pooled)
                try:
                    yield conn
                except BaseException as error:
                    if self.settings.pooler is None and _shows_pooler(error):
                        pooler.note(self.dsn)
                    # Half-read answers, open transactions, demoted servers: none is worth keeping.
                    await self._give_back(conn, is_sound=_is_refusal(error))
                    if watch.is_silent:
                        silence.note(self.dsn, watch.began)
                        await self._drop_idle()
                        raise DatabaseUnavailable(SILENT) from error
                    raise
                finally:
                    watch.end()
                await self._give_back(conn, is_sound=True)

    async def _probe(self) -> AsyncConn:
        return await connect(self.dsn, self.settings, "probe")

    async def _drop_idle(self) -> None:
        while self._idle:
            await self._idle.pop()[1].close()

    async def _give_back(self, conn: AsyncConn, *, is_sound: bool) -> None:
        is_idle = conn.info.transaction_status == TransactionStatus.IDLE
        if is_sound and is_idle and not self.is_closed:
            self._idle.append((time.monotonic(), conn))
        else:
            await conn.close()

    async def _take(self) -> AsyncConn:
        if self.is_closed:
            raise DatabaseUnavailable("this Laneway is closed")
        while self._idle:
            proven_at, conn = self._idle.pop()
            is_dead = conn.closed or silence.is_suspect(self.dsn, proven_at)
            if not is_dead and not _was_hung_up(conn):
                return conn
            await conn.close()
        if "dsn" not in self.__dict__:
            await asyncio.to_thread(lambda: self.dsn)
        made = await connect(self.dsn, self.settings, self.role)
        self._made.add(made)
        return made

    async def run(self, statement: Statement[T]) -> T:
        async with self.connection() as conn:
            answer = await run_on(conn, statement)
        local_notify.ring(statement.name)
        return answer

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Several statements that are committed together, or not at all."""
        async with self.connection() as conn, bounded_transaction(conn, self.settings):
            yield Transaction(conn)
        local_notify.ring()

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[Database]:
        """A database whose verbs are committed together, or not at all."""
        async with self.connection() as conn, bounded_transaction(conn, self.settings):
            yield _Joined(self, conn)
        local_notify.ring()

    async def within(self, workspaces: Collection[str] | None) -> Database:
        """What of it somebody sees who reaches only into these workspaces; None: all of it.

        Only a role that row-level security binds sees less by it: see `laneway db grants`.
        """
        if workspaces is None:
            return self
        if self._is_bound is None:
            self._is_bound = await self.run(row_security.are_bound())
        return _Within(self, workspaces) if self._is_bound else self


class _Joined(Database):
    """All its statements run one after the other on one connection.

    Its transactions are parts of the one it is; `joined` again is a part that can fail by itself.
    """

    is_joined = True

    def __init__(self, of: Database, conn: AsyncConn) -> None:
        super().__init__(lambda: of.dsn, of.settings, size=1)
        self._conn = conn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        with translated():
            yield self._conn

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.connection() as conn:
            yield Transaction(conn)


class _Within(Database):
    """Every statement is in a transaction that says first which workspaces it may see.

    For that transaction only: behind a pooler the next one may be somebody else's.
    """

    def __init__(self, of: Database, workspaces: Collection[str]) -> None:
        super().__init__(lambda: of.dsn, of.settings, size=1)
        self._of = of
        self._narrow = row_security.narrow(workspaces)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        async with self._of.connection() as conn, bounded_transaction(conn, self.settings):
            await run_on(conn, self._narrow)
            yield conn

    async def run(self, statement: Statement[T]) -> T:
        async with self._of.connection() as conn:
            # What a pipeline sends before it waits is one transaction.
            async with conn.pipeline():
                narrowing = await _sent(conn, self._narrow)
                cursor = await _sent(conn, statement)
            await narrowing.close()
            return await _answer(cursor, statement)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.connection() as conn:
            yield Transaction(conn)

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[Database]:
        async with self.connection() as conn:
            yield _Joined(self, conn)


class Runner(Protocol):
    """Whatever runs a Statement: a database, or one transaction of it."""

    async def run(self, statement: Statement[T]) -> T: ...


class Transaction:
    """Runs statements on one connection; `Database.transaction` makes it and ends it."""

    def __init__(self, conn: AsyncConn) -> None:
        self._conn = conn

    async def run(self, statement: Statement[T]) -> T:
        return await run_on(self._conn, statement)


def _is_refusal(error: BaseException) -> bool:
    """Whether it says no more of the connection than that it was asked for something wrong."""
    if not isinstance(error, LanewayError):
        known = translate(error) if isinstance(error, psycopg.Error) else None
        return known is not None and _is_refusal(known)
    return not isinstance(error, DatabaseUnavailable)


def _shows_pooler(error: BaseException) -> bool:
    cause = error.__cause__
    return pooler.shows(error) or (cause is not None and pooler.shows(cause))


def _was_hung_up(conn: AsyncConn) -> bool:
    """Whether the server has said something to an idle connection: then it was goodbye."""
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def run_on(conn: AsyncConnection[Any], statement: Statement[T]) -> T:
    """Runs a statement on an async connection, ours or the caller's."""
    with translated(field_of(statement.params), conn):
        return await _answer(await _sent(conn, statement), statement)


async def _sent(
    conn: AsyncConnection[Any], statement: Statement[Any]
) -> AsyncCursor[tuple[Any, ...]]:
    cursor = conn.cursor(binary=True, row_factory=psycopg.rows.tuple_row)
    await cursor.execute(statement.text.encode(), statement.params)
    return cursor


async def _answer(cursor: AsyncCursor[tuple[Any, ...]], statement: Statement[T]) -> T:
    with reading(statement.name):
        rows = await cursor.fetchall() if _has_rows(cursor.pgresult) else []
    await cursor.close()
    found = cast("list[Row]", rows)
    if statement.may_be_large and _is_large(found):
        return await asyncio.to_thread(statement.decode, found)
    return statement.decode(found)


def _is_large(rows: list[Row]) -> bool:
    return sum(len(each) for row in rows for each in row if type(each) in (str, bytes)) > _LARGE


def _has_rows(result: PGresult | None) -> bool:
    # Not by `description`: that describes every column, a third of what a claim costs here.
    return result is not None and result.nfields > 0


def run_sync(conn: Connection[Any], statement: Statement[T]) -> T:
    """Runs a statement on a sync connection of the caller."""
    with (
        translated(field_of(statement.params), conn),
        conn.cursor(binary=True, row_factory=psycopg.rows.tuple_row) as cursor,
    ):
        cursor.execute(statement.text.encode(), statement.params)
        with reading(statement.name):
            rows = cursor.fetchall() if _has_rows(cursor.pgresult) else []
        return statement.decode(cast("list[Row]", rows))
