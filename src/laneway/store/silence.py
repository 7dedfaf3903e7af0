"""Detection of connections that stopped responding.

A network that drops packets closes no connection. A statement may also just be slow, so before a
connection is closed, another one asks the server whether it still runs the statement.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from laneway.config.settings import Settings

# Pause between two checks of a session that is idle: a result may still be in transit.
RECHECK_S: Final = 0.5
# Offset of the acknowledged and received bytes in struct tcp_info of Linux.
_TCP_BYTES: Final = (120, struct.Struct("=QQ"))
ACTIVITY: Final = b"select state, state_change from pg_catalog.pg_stat_activity where pid = %s"
# Whether the probe sees its own name, so that the pooler passes names on; and whether the watched
# session is active.
_BY_NAME: Final = b"""
select (select a.application_name = %s from pg_catalog.pg_stat_activity a
         where a.pid = pg_catalog.pg_backend_pid()),
       exists (select from pg_catalog.pg_stat_activity a where a.application_name = %s
                  and coalesce(a.state, 'disabled') in ('active', 'disabled'))
"""
# The unique suffix of the name of a connection behind a pooler.
_UNIQUE: Final = re.compile(r" [0-9a-f]{12}\Z")

T = TypeVar("T")
Connect = Callable[[], Awaitable[AsyncConnection[Any]]]


def unique_name(name: str) -> str:
    """A unique name that identifies the server session behind a pooler."""
    return f"{name} {secrets.token_hex(6)}"


def hang_up(conn: AsyncConnection[Any] | Connection[Any]) -> None:
    """Shuts down the socket, so that a waiting statement fails at once."""
    if not conn.closed:
        with contextlib.suppress(OSError), _socket_of(conn) as opened:
            opened.shutdown(socket.SHUT_RDWR)


async def or_hang_up(conn: AsyncConnection[Any], work: Coroutine[Any, Any, T]) -> T:
    """Runs statements on a connection; hangs it up at once if this is cancelled.

    Otherwise the driver asks the server to cancel them, and waits up to 10 s for it.
    """
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        hang_up(conn)
        await asyncio.gather(working, return_exceptions=True)
        raise


# DSN → start of the last statement whose connection went silent.
_silent_since: dict[str, float] = {}


def mark_silent(dsn: str, since: float) -> None:
    """Makes every pool of this process distrust connections that last worked before `since`.

    Otherwise each of them would time out in turn.
    """
    _silent_since[dsn] = since


def is_suspect(dsn: str, proven_at: float) -> bool:
    """Whether another connection went silent after this one last worked."""
    return proven_at < _silent_since.get(dsn, -1.0)


class SilenceWatch:
    """Monitors a connection while it is in use; when the block ends, its probe is closed.

    `is_silent`: the connection was closed. `probe` opens another connection to the same server.
    Behind a pooler the session is found by its name; if the pooler hides names, only
    `statement_timeout` applies.
    """

    def __init__(
        self, conn: AsyncConnection[Any], settings: Settings, probe: Connect, *, is_pooled: bool
    ) -> None:
        self._conn = conn
        self._probe = probe
        self._is_pooled = is_pooled
        self._patience_s = settings.silence_timeout
        self._loop = asyncio.get_running_loop()
        self.began = time.monotonic()
        self._until = self._loop.time() + settings.statement_timeout + settings.silence_timeout
        self._probing: asyncio.Task[None] | None = None
        self._other: AsyncConnection[Any] | None = None
        self._timer = self._loop.call_later(self._patience_s, self._check)
        self._is_ended = False
        self.is_silent = False

    async def __aenter__(self) -> SilenceWatch:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_ended = True
        self._timer.cancel()
        if self._probing is None or self._probing.done():
            return
        if self._other is not None and _is_active(self._other):
            # If it is cancelled, the driver asks the server to cancel the statement, and waits.
            hang_up(self._other)
        else:
            self._probing.cancel()
        await asyncio.wait([self._probing])

    def _check(self) -> None:
        if not _is_active(self._conn):
            self._timer = self._loop.call_later(self._patience_s, self._check)
        elif self._is_pooled and self._loop.time() >= self._until:
            self._close()
        else:
            self._probing = self._loop.create_task(self._run_probe(), name="laneway silence")

    async def _run_probe(self) -> None:
        before = _bytes_moved(self._conn)
        is_lost = await self._is_lost()
        if self._is_ended:
            return
        # Large values take time on a slow network, before or after the server is done.
        if is_lost and _is_active(self._conn) and _bytes_moved(self._conn) == before:
            self._close()
        else:
            self._timer = self._loop.call_later(self._patience_s, self._check)

    def _close(self) -> None:
        self.is_silent = True
        hang_up(self._conn)

    async def _is_lost(self) -> bool:
        """Whether the server is idle or unreachable, so that no result will come."""
        deadline = self._loop.time() + self._patience_s
        try:
            async with asyncio.timeout_at(deadline):
                self._other = await self._probe()
        except TimeoutError:
            return True
        except psycopg.Error as error:
            if not _has_free_descriptor():
                # The server was not asked: the statement may still run.
                return self._loop.time() >= self._until
            # A server that refuses a connection is reachable; it may be full.
            return isinstance(error, psycopg.errors.ConnectionTimeout) or "FATAL" not in str(error)
        expiry = self._loop.call_at(deadline, hang_up, self._other)
        try:
            async with self._other as other:
                first = await self._activity(other)
                if first is None:
                    return False
                await asyncio.sleep(RECHECK_S)
                return first == await self._activity(other)
        except psycopg.Error as error:
            # A server that refuses the probe has responded. If the pooler has no free session, the
            # probe waits in the same queue.
            return not self._is_pooled and error.sqlstate is None
        finally:
            expiry.cancel()

    async def _activity(self, other: AsyncConnection[Any]) -> object:
        """The idle state of the server's session; None: active or unknown."""
        if self._is_pooled:
            return await self._activity_by_name(other)
        pid = self._conn.info.backend_pid
        row = await (await other.execute(ACTIVITY, [pid], prepare=False)).fetchone()
        if row is not None and row[0] in ("active", "disabled", None):
            return None
        return row or "gone"

    async def _activity_by_name(self, other: AsyncConnection[Any]) -> object:
        own, probing = _name_of(self._conn), _name_of(other)
        if not _UNIQUE.search(own):
            return None
        row = await (await other.execute(_BY_NAME, [probing, own], prepare=False)).fetchone()
        is_name_passed, is_active = row or (False, True)
        return "idle" if is_name_passed and not is_active else None


def _is_active(conn: AsyncConnection[Any]) -> bool:
    """Whether a statement waits for its result."""
    return conn.info.transaction_status == TransactionStatus.ACTIVE


def _has_free_descriptor() -> bool:
    """Whether this process may open another socket."""
    try:
        socket.socket().close()
    except OSError:
        return False
    return True


def _name_of(conn: AsyncConnection[Any]) -> str:
    return conn.info.get_parameters().get("application_name", "")


def _bytes_moved(conn: AsyncConnection[Any]) -> tuple[int, int] | None:
    """Bytes that TCP has sent and received, if the system reports them."""
    offset, form = _TCP_BYTES
    with contextlib.suppress(OSError, AttributeError, struct.error), _socket_of(conn) as opened:
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, offset + form.size)
        acknowledged, received = form.unpack_from(info, offset)
        return acknowledged, received
    return None


@contextmanager
def _socket_of(conn: AsyncConnection[Any] | Connection[Any]) -> Iterator[socket.socket]:
    """The driver's socket itself: a copy would need a file descriptor, and none may be left."""
    opened = socket.socket(fileno=conn.fileno())
    try:
        yield opened
    finally:
        opened.detach()
