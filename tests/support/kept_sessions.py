"""Give the session of a connection that closes to the next test that connects in the same way.

A new session reads the catalog, and parses and plans every function that it calls: half of what a
test cost. A session is kept only if it is idle. `discard all` ends everything that a test can see
of it: prepared statements, plans, settings, notifications, advisory locks and temporary tables.
Meanwhile it is called `tests kept`, so tests that look for connections of Laneway find only theirs.
No test gets a session that it has closed itself.
Other processes, other servers and tests with the fixture `new_sessions` open new sessions.
"""

from __future__ import annotations

import select
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
import pytest
from psycopg import pq
from psycopg.conninfo import make_conninfo

NAME = "tests kept"
# Its writes are counted now instead of when it ends; see `database_pool`.
REST = f"set application_name = '{NAME}'; select pg_stat_force_next_flush()".encode()
# A server that a test has stopped answers later, or never.
PATIENCE = 2.0
# Of one kind; and of all that one test may leave.
MOST, MOST_CLOSED = 8, 16
_RESULTS = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]
C = TypeVar("C", psycopg.Connection[Any], psycopg.AsyncConnection[Any])
Key = tuple[type[AnyConnection], str]


class KeptSessions:
    """Idle sessions by how they were opened. Connections close in many threads."""

    def __init__(self) -> None:
        self.is_on = True
        self._lock = threading.Lock()
        self._kept: dict[str, dict[Key, list[pq.abc.PGconn]]] = {}
        self._closed: list[tuple[str, Key, pq.abc.PGconn]] = []
        """By the test that runs."""
        self._origins: WeakKeyDictionary[AnyConnection, tuple[str, Key]] = WeakKeyDictionary()
        self._ended = pq.PGconn.connect_start(b"host=/nowhere")
        self._ended.finish()

    @contextmanager
    def of(self, dsn: str) -> Iterator[None]:
        """Keep sessions of this database until the block ends."""
        with self._lock:
            self._kept[dsn] = defaultdict(list)
        try:
            yield
        finally:
            self.begin_test()
            with self._lock:
                kept = self._kept.pop(dsn)
            for sessions in kept.values():
                for session in sessions:
                    session.finish()

    def begin_test(self) -> None:
        """Offer what the test before has closed."""
        with self._lock:
            for dsn, key, session in self._closed:
                if dsn in self._kept and len(self._kept[dsn][key]) < MOST:
                    self._kept[dsn][key].append(session)
                else:
                    session.finish()
            self._closed.clear()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replace how psycopg opens and closes connections in this process."""
        connect, close = psycopg.Connection.connect, psycopg.Connection.close
        connect_async = psycopg.AsyncConnection.connect
        close_async = psycopg.AsyncConnection.close

        def kept_connect(cls: Any, /, conninfo: str = "", **options: Any) -> Any:
            if conninfo not in self._kept or cls is not psycopg.Connection:
                return connect.__func__(cls, conninfo, **options)  # type: ignore[attr-defined]
            key, settings = _key(cls, conninfo, options)
            if (session := self._take(conninfo, key)) is None:
                conn = connect(conninfo, **options)
            else:
                conn = _renewed(cls, session, settings)
                conn.set_autocommit(settings.get("autocommit", False))
            self._origins[conn] = (conninfo, key)
            return conn

        async def kept_connect_async(cls: Any, /, conninfo: str = "", **options: Any) -> Any:
            if conninfo not in self._kept or cls is not psycopg.AsyncConnection:
                return await connect_async.__func__(cls, conninfo, **options)  # type: ignore[attr-defined]
            key, settings = _key(cls, conninfo, options)
            if (session := self._take(conninfo, key)) is None:
                conn = await connect_async(conninfo, **options)
            else:
                conn = _renewed(cls, session, settings)
                await conn.set_autocommit(settings.get("autocommit", False))
            self._origins[conn] = (conninfo, key)
            return conn

        def kept_close(conn: psycopg.Connection[Any]) -> None:
            self._keep(conn)
            close(conn)

        async def kept_close_async(conn: psycopg.AsyncConnection[Any]) -> None:
            self._keep(conn)
            await close_async(conn)

        patch.setattr(psycopg.Connection, "connect", classmethod(kept_connect))
        patch.setattr(psycopg, "connect", psycopg.Connection.connect)
        patch.setattr(psycopg.AsyncConnection, "connect", classmethod(kept_connect_async))
        patch.setattr(psycopg.Connection, "close", kept_close)
        patch.setattr(psycopg.AsyncConnection, "close", kept_close_async)

    def _take(self, dsn: str, key: Key) -> pq.abc.PGconn | None:
        while self.is_on:
            with self._lock:
                sessions = self._kept[dsn][key] if dsn in self._kept else []
                session = sessions.pop() if sessions else None
            if session is None or _ran(session, b"reset all"):
                return session
            session.finish()
        return None

    def _keep(self, conn: AnyConnection) -> None:
        """Detach the session of a connection that is about to close, if it can be used again."""
        origin = self._origins.pop(conn, None)
        if conn.closed or origin is None or not self.is_on:
            return
        (dsn, key), session = origin, conn.pgconn
        if (
            session.transaction_status != pq.TransactionStatus.IDLE
            or session.pipeline_status != pq.PipelineStatus.OFF
            or len(self._closed) >= MOST_CLOSED
            or not _ran(session, b"discard all")
            or not _ran(session, REST)
        ):
            return
        while session.notifies():
            pass
        with self._lock:
            self._closed.append((dsn, key, session))
        conn.pgconn = self._ended


def _key(
    cls: type[AnyConnection], conninfo: str, options: dict[str, Any]
) -> tuple[Key, dict[str, Any]]:
    """Return how a connection is opened, and what psycopg sets afterwards."""
    names = ("autocommit", "prepare_threshold", "row_factory", "cursor_factory", "context")
    settings = {name: options[name] for name in names if name in options}
    given = {name: value for name, value in options.items() if name not in names}
    return (cls, make_conninfo(conninfo, **given)), settings


def _renewed(cls: type[C], session: pq.abc.PGconn, settings: dict[str, Any]) -> C:
    conn: C = cls(session)
    assert settings.get("context") is None
    conn.prepare_threshold = settings.get("prepare_threshold", 5)
    if settings.get("row_factory"):
        conn.row_factory = settings["row_factory"]
    if settings.get("cursor_factory"):
        conn.cursor_factory = settings["cursor_factory"]
    return conn


def _ran(session: pq.abc.PGconn, command: bytes) -> bool:
    """Whether the server has run a command, soon and without an error."""
    deadline = time.monotonic() + PATIENCE
    try:
        session.send_query(command)
        while session.flush():
            pass
        while True:
            while session.is_busy():
                poll = select.poll()
                poll.register(session.socket, select.POLLIN)
                if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    return False
                session.consume_input()
            if (result := session.get_result()) is None:
                return session.transaction_status == pq.TransactionStatus.IDLE
            if result.status not in _RESULTS:
                return False
    except psycopg.Error:
        return False


# Those of this process.
shared = KeptSessions()
