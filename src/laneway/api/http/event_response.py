"""Sends a stream as a text/event-stream response until either side ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from fastapi import Response
from starlette.types import Receive, Scope, Send

from laneway.errors import LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.streams.frames import OPENING, PING
from laneway.streams.hub import Hub
from laneway.streams.stream import Stream

log = SafeLogger(__name__)

# Proxies close silent connections; the documentation promises at most 15 seconds.
PING_S: Final = 10.0


class EventResponse(Response):
    """Sends the frames of a stream, and pings while there are none.

    FastAPI's response does not fit: a client that does not read must be dropped during a blocked
    send, and all readers of an event share its bytes.
    """

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, stream: Stream, first: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._stream = stream
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        disconnect = asyncio.ensure_future(_disconnected(receive))
        # A send to a client that never reads blocks forever unless it is cancelled.
        self._stream.on_drop(sending.cancel)
        try:
            await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._stream)
            self._stream.end()
            for task in (sending, disconnect):
                task.cancel()
            await asyncio.wait({sending, disconnect})
        error = None if sending.cancelled() else sending.exception()
        if isinstance(error, LanewayError):
            # The response has started, so it can only end. The client reconnects.
            log.warning("a stream ended: %s", error)
        elif error is not None:
            raise error

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        async def body(part: bytes, *, is_more: bool = True) -> None:
            await send({"type": "http.response.body", "body": part, "more_body": is_more})

        await body(OPENING)
        async for part in self._first:
            await body(part)
        while (frames := await self._stream.take(PING_S)) is not None:
            await body(frames or PING)
        await body(b"", is_more=False)


async def _disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
