"""LISTEN on one dedicated connection: faster than polling, but optional.

Messages: `wake <job types>` (jobs wait), `cancel <worker id>` (check your jobs), `drain <worker
id>` (check whether you may claim) and `schedules` (a schedule changed).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from laneway import forks
from laneway.config.settings import Settings
from laneway.store import pooler
from laneway.store.database import connect
from laneway.store.driver_errors import translated
from laneway.store.silence import hang_up, or_hang_up
from laneway.store.statement import Statement, nothing

CHANNEL = "laneway"
PING_S = 10.0
LONGEST = 7900


def wake(message: str, *, alone: bool = True) -> Statement[None]:
    """Notifies listeners, with at most 7,900 bytes. `alone`: in its own transaction."""
    return Statement("control/wake_workers", nothing, {"message": message, "alone": alone})


def wake_message(job_types: set[str]) -> str:
    """`wake a,b`, or `wake *` when the names exceed one notification."""
    message = "wake " + "\x1f".join(sorted(job_types))
    return message if len(message.encode()) <= LONGEST else "wake *"


class Listener:
    """Passes each message to a callback; `listen` only ends by raising, then call it again."""

    def __init__(
        self,
        dsn: str,
        settings: Settings,
        on_message: Callable[[str], None],
        channel: str = CHANNEL,
    ) -> None:
        self._dsn = settings.listen_dsn or dsn
        self._channel = Identifier(channel)
        self._settings = settings
        self._on_message = on_message
        self.is_listening = False

    async def listen(self, on_ready: Callable[[], None]) -> None:
        """Subscribes, calls `on_ready` (earlier messages may be lost), then passes messages on."""
        with translated():
            conn = await connect(self._dsn, self._settings, "listen")
            fds = forks.Fds(conn.fileno())
            try:
                if await self._is_shared(conn):
                    # Notifications would reach other clients; callers poll instead.
                    fds.let_go()
                    await conn.close()
                    await asyncio.Event().wait()
                # Those that come with the answer to a statement.
                conn.add_notify_handler(lambda notice: self._on_message(notice.payload))
                await conn.execute(SQL("listen {}").format(self._channel))
                self.is_listening = True
                on_ready()
                while True:
                    await self._receive(conn)
                    # A ping detects a half-open connection.
                    await self._ping(conn)
            finally:
                self.is_listening = False
                fds.let_go()
                await conn.close()

    async def _receive(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """Passes messages on as they arrive, without a task in between, until a ping is due."""
        loop = asyncio.get_running_loop()
        failed: asyncio.Future[Exception] = loop.create_future()
        pgconn, socket = conn.pgconn, conn.fileno()

        def read() -> None:
            try:
                pgconn.consume_input()
                while notice := pgconn.notifies():
                    self._on_message(notice.extra.decode())
            except Exception as error:
                # At once: a lost connection has closed its socket, and the next file or socket
                # that is opened gets the same number.
                loop.remove_reader(socket)
                failed.set_result(error)

        loop.add_reader(socket, read)
        # Those that the driver has read after the result of a ping.
        read()
        try:
            await asyncio.wait({failed}, timeout=PING_S)
        finally:
            if not failed.done():
                loop.remove_reader(socket)
        if failed.done():
            raise failed.result()

    async def _ping(self, conn: psycopg.AsyncConnection[Any]) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._settings.silence_timeout, hang_up, conn)
        try:
            await or_hang_up(conn, conn.execute("select 1"))
        finally:
            timer.cancel()

    async def _is_shared(self, conn: psycopg.AsyncConnection[Any]) -> bool:
        if self._settings.pooler is not None or not pooler.is_pooled(self._dsn, self._settings):
            return False
        other = await connect(self._dsn, self._settings, "listen")
        try:
            return await pooler.is_shared(conn, other)
        finally:
            await other.close()
