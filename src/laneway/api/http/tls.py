"""Accepts TLS connections; a handshake holds a slot like any other connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from laneway.api.http.connections import Connections
from laneway.api.http.protocol import Protocol
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway.api")

# Connections accepted per iteration of the event loop; a dropped one is closed in the next.
_AT_ONCE: Final = 16
# Wait after accept has failed, for example because no file descriptors are left.
_PAUSE_S: Final = 1.0


class TlsHandshake:
    """A connection before its first byte of HTTP; like an idle one, it may be dropped."""

    is_waiting = True

    def __init__(self, connection: socket.socket, address: str | None, slots: Connections) -> None:
        self.connection = connection
        self.address = address
        self._slots = slots

    def leave(self) -> None:
        """Release the slot; the connection itself may continue."""
        self._slots.remove(self.address, self)

    def drop(self) -> None:
        """Shut the socket down; the event loop closes it when it notices."""
        self.leave()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class TlsServer:
    """Listens on one socket. `asyncio.Server` would accept connections without any bound."""

    def __init__(
        self,
        bound: socket.socket,
        make_protocol: Callable[[], Protocol],
        context: ssl.SSLContext,
        slots: Connections,
        handshake_s: float,
    ) -> None:
        self._bound = bound
        self._make_protocol = make_protocol
        self._context = context
        self._slots = slots
        self._handshake_s = handshake_s
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], TlsHandshake] = {}
        self._is_closed = False
        bound.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no more connections and drop handshakes in progress."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._bound.fileno())
            for handshake in list(self._handshakes.values()):
                handshake.drop()

    async def wait_closed(self) -> None:
        """Wait until no handshake is in progress."""
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    def _listen(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._bound.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, peer = self._bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("cannot accept connections: %s", error.strerror or error)
                self._loop.remove_reader(self._bound.fileno())
                self._loop.call_later(_PAUSE_S, self._listen)
                return
            connection.setblocking(False)
            handshake = TlsHandshake(connection, peer[0], self._slots)
            if not self._slots.add(handshake.address, handshake):
                connection.close()
                continue
            task = self._loop.create_task(self._run(handshake))
            self._handshakes[task] = handshake
            task.add_done_callback(self._handshakes.pop)

    async def _run(self, handshake: TlsHandshake) -> None:
        def make() -> Protocol:
            protocol = self._make_protocol()
            protocol.handshake = handshake
            return protocol

        try:
            await self._loop.connect_accepted_socket(
                make,
                handshake.connection,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_s,
            )
        except OSError as error:
            log.debug("TLS handshake failed: %s", error)
        finally:
            handshake.leave()
