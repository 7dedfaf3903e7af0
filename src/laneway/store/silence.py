"""Notices connections that bring no answer any more, and gives them up.

A network that swallows packets closes nothing. Statements may be slow all the same, so before a
connection is given up, the server is asked over another one whether it still works on the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from laneway.config.settings import Settings

# Between two looks at a server that says it is idle: an answer may be on its way.
AGAIN_S: Final = 0.5
# Where in struct tcp_info of Linux the bytes acknowledged and received stand.
_TCP_BYTES: Final = (120, struct.Struct("=QQ"))
_ACTIVITY: Final = b"select state, state_change from pg_catalog.pg_stat_activity where pid = %s"
# Whether the asking session has its own name, so a pooler passes names on; and whether ours works.
_BY_NAME: Final = b"""
select (select a.application_name = %s from pg_catalog.pg_stat_activity a
         where a.pid = pg_catalog.pg_backend_pid()),
       exists (select from pg_catalog.pg_stat_activity a where a.application_name = %s
                  and coalesce(a.state, 'disabled') in ('active', 'disabled'))
"""
# The end of the name of a connection behind a pooler, which no other has.
_UNIQUE: Final = re.compile(r" [0-9a-f]{12}\Z")

Connect = Callable[[], Awaitable[AsyncConnection[Any]]]


def unique_name(name: str) -> str:
    """A name by which the server's session can be found behind a pooler."""
    return f"{name} {secrets.token_hex(6)}"


def hang_up(conn: AsyncConnection[Any] | Connection[Any]) -> None:
    """Ends the connection under a statement that waits: it fails at once."""
    if not conn.closed:
        with contextlib.suppress(OSError), _socket_of(conn) as opened:
            opened.shutdown(socket.SHUT_RDWR)


# DSN → when the last statement began whose connection went silent.
_silent_since: dict[str, float] = {}


def note(dsn: str, since: float) -> None:
    """Lets every pool of this process know: other connections are likely to have gone the same way.

    Else each would be waited for in its turn: one to find work, one to claim it, one to finish it.
    """
    _silent_since[dsn] = since


def is_suspect(dsn: str, proven_at: float) -> bool:
    """Whether a connection to it fell silent after this one was last known to work."""
    return proven_at < _silent_since.get(dsn, -1.0)


class Watch:
    """Looks after a connection while somebody uses it; `end` it then.

    `is_silent`: it was given up. `probe` opens another connection to the same server. Behind a
    pooler the session is found by its name; where that is not passed on, only `statement_timeout`
    tells.
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
        self._asking: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self._patience_s, self._look)
        self.is_silent = False

    def end(self) -> None:
        self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def _look(self) -> None:
        if not self._waits:
            self._timer = self._loop.call_later(self._patience_s, self._look)
        elif self._is_pooled and self._loop.time() >= self._until:
            self._give_up()
        else:
            self._asking = self._loop.create_task(self._ask(self._probe), name="laneway silence")

    @property
    def _waits(self) -> bool:
        return self._conn.info.transaction_status == TransactionStatus.ACTIVE

    async def _ask(self, probe: Connect) -> None:
        before = _moved(self._conn)
        is_lost = await self._is_lost(probe)
        # Large values take their time on a slow network, after the server is done or before.
        if is_lost and self._waits and _moved(self._conn) == before:
            self._give_up()
        else:
            self._timer = self._loop.call_later(self._patience_s, self._look)

    def _give_up(self) -> None:
        self.is_silent = True
        hang_up(self._conn)

    async def _is_lost(self, probe: Connect) -> bool:
        """Whether the server has nothing to say to us, or cannot be reached either."""
        is_reached = False
        try:
            async with asyncio.timeout(self._patience_s):
                async with await probe() as other:
                    is_reached = True
                    first = await self._activity(other)
                    await asyncio.sleep(AGAIN_S)
                    second = await self._activity(other)
        except TimeoutError:
            # Behind a pooler that has no session free, ours waits in the same queue.
            return not (self._is_pooled and is_reached)
        except psycopg.Error as error:
            # A server that refuses is there; it may have no place for one more.
            return isinstance(error, psycopg.errors.ConnectionTimeout) or "FATAL" not in str(error)
        return first is not None and first == second

    async def _activity(self, other: AsyncConnection[Any]) -> object:
        """Since when the server's session is idle; None: it works, or that cannot be told."""
        if self._is_pooled:
            return await self._activity_by_name(other)
        pid = self._conn.info.backend_pid
        row = await (await other.execute(_ACTIVITY, [pid], prepare=False)).fetchone()
        if row is not None and row[0] in ("active", "disabled", None):
            return None
        return row or "gone"

    async def _activity_by_name(self, other: AsyncConnection[Any]) -> object:
        own, asking = _name_of(self._conn), _name_of(other)
        if not _UNIQUE.search(own):
            return None
        row = await (await other.execute(_BY_NAME, [asking, own], prepare=False)).fetchone()
        is_passed_on, is_working = row or (False, True)
        return "idle" if is_passed_on and not is_working else None


def _name_of(conn: AsyncConnection[Any]) -> str:
    return conn.info.get_parameters().get("application_name", "")


def _moved(conn: AsyncConnection[Any]) -> tuple[int, int] | None:
    """Bytes that TCP has moved both ways, where the system tells."""
    offset, form = _TCP_BYTES
    with contextlib.suppress(OSError, AttributeError, struct.error), _socket_of(conn) as opened:
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, offset + form.size)
        acknowledged, received = form.unpack_from(info, offset)
        return acknowledged, received
    return None


def _socket_of(conn: AsyncConnection[Any] | Connection[Any]) -> socket.socket:
    """The socket, under a number that may be closed."""
    return socket.socket(fileno=os.dup(conn.fileno()))
