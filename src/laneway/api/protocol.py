"""HTTP on one connection, with an end to how long and how slowly a request may begin.

Nobody is known before the head of his request is read, and the parser keeps all of it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from laneway.api.problems import MEDIA_TYPE, Problem

log = logging.getLogger("laneway.api")

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

    def send_400_response(self, msg: str) -> None:
        """As everything else that is refused: a problem, with an id that the log knows too."""
        own_id = uuid4().hex
        log.info("no request was read: %s", msg, extra={"request_id": own_id})
        problem = Problem(
            type="urn:laneway:problem:bad_request",
            title="Bad Request",
            status=400,
            code="bad_request",
            detail=msg,
            request_id=own_id,
        )
        body = problem.model_dump_json(exclude_none=True)
        head = (
            "HTTP/1.1 400 Bad Request",
            f"content-type: {MEDIA_TYPE}",
            f"content-length: {len(body)}",
            f"x-request-id: {own_id}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*head, "", body)).encode("ascii"))
        self.transport.close()

    def _hurry(self) -> None:
        self._deadline = self.loop.call_later(MOST_S, self.transport.close)

    def _calm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
