"""HTTP on one connection, with an end to how long and how slowly a request may begin.

Nobody is known before the head of his request is read, and the parser keeps all of it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES: Final = 64 * 1024
MOST_S: Final = 30.0


class Protocol(HttpToolsProtocol):
    """Cuts off who has begun no request in time, or one whose head has no end."""

    _is_in_head = _is_new = False
    _size = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._is_in_head = self._is_new = True
        self._size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._calm()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        self._is_new = False
        super().data_received(data)
        if not self._is_in_head:
            return
        if not self._is_new:
            self._size += len(data)
            if self._size > MOST_BYTES:
                self.send_400_response("The head of the request is too large.")
        elif self._deadline is None:
            self._hurry()

    def _hurry(self) -> None:
        self._deadline = self.loop.call_later(MOST_S, self.transport.close)

    def _calm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
