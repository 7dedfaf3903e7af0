"""Accepts TLS connections; a handshake holds a place like any other connection."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from laneway.api.http.connections import Connections
from laneway.api.http.protocol import Protocol

log = logging.getLogger("laneway.api")

# Accepted in one turn of the event loop: one that gives way is closed in the next.
_AT_ONCE: Final = 16
# After accept has failed, as it does without descriptors.
_PAUSE_S: Final = 1.0


class TlsHandshake:
    """A connection before its first byte of HTTP; it gives way like one that waits."""

    is_waiting = True

    def __init__(self, connection: socket.socket, address: str | None, places: Connections) -> None:
        self.connection = connection
        self.address = address
        self._places = places

    def leave(self) -> None:
        """Give the place back; the connection itself may go on."""
        self._places.remove(self.address, self)

    def drop(self) -> None:
        """End it: the event loop closes the socket as soon as it reads that."""
        self.leave()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class TlsServer:
    """Listens on one socket; `asyncio.Server` would accept without end before it asks anybody."""

    def __init__(
        self,
        bound: socket.socket,
        make_protocol: Callable[[], Protocol],
        context: ssl.SSLContext,
        places: Connections,
        handshake_s: float,
    ) -> None:
        self._bound = bound
        self._make_protocol = make_protocol
        self._context = context
        self._places = places
        self._handshake_s = handshake_s
        self._loop = asyncio.get_running_loop()
        self._shaking: dict[asyncio.Task[None], TlsHandshake] = {}
        self._is_closed = False
        bound.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no more, and end the handshakes under way."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._bound.fileno())
            for one in list(self._shaking.values()):
                one.drop()

    async def wait_closed(self) -> None:
        """Wait until no handshake is under way."""
        if self._shaking:
            await asyncio.wait(self._shaking)

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
                log.error("no connection can be accepted: %s", error.strerror or error)
                self._loop.remove_reader(self._bound.fileno())
                self._loop.call_later(_PAUSE_S, self._listen)
                return
            connection.setblocking(False)
            one = TlsHandshake(connection, peer[0], self._places)
            if not self._places.add(one.address, one):
                connection.close()
                continue
            task = self._loop.create_task(self._shake(one))
            self._shaking[task] = one
            task.add_done_callback(self._shaking.pop)

    async def _shake(self, one: TlsHandshake) -> None:
        def make() -> Protocol:
            protocol = self._make_protocol()
            protocol.handshake = one
            return protocol

        try:
            await self._loop.connect_accepted_socket(
                make,
                one.connection,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_s,
            )
        except OSError as error:
            log.debug("a handshake of TLS failed: %s", error)
        finally:
            one.leave()
