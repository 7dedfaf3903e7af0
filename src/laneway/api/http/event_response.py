"""A stream as an answer: text/event-stream, until one of the two sides has enough."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from fastapi import Response
from starlette.types import Receive, Scope, Send

from laneway.errors import LanewayError
from laneway.streams.frames import OPENING, PING
from laneway.streams.hub import Hub
from laneway.streams.stream import Stream

log = logging.getLogger(__name__)

# Proxies close what is silent for longer; at most 15 seconds are promised.
PING_S: Final = 10.0


class EventResponse(Response):
    """Sends what a stream has; pings while it has nothing.

    Not FastAPI's own: a reader who does not read must be let go while a send to him waits, and all
    who hear the same event share its bytes.
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
        leaving = asyncio.ensure_future(_gone(receive))
        # It may wait for a reader who never reads: only from outside it can be let go.
        self._stream.on_drop(sending.cancel)
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._stream)
            self._stream.end()
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait({sending, leaving})
        error = None if sending.cancelled() else sending.exception()
        if isinstance(error, LanewayError):
            # The answer has begun: all that can be said is that it is over. The reader comes again.
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
        while (news := await self._stream.take(PING_S)) is not None:
            await body(news or PING)
        await body(b"", is_more=False)


async def _gone(receive: Receive) -> None:
    """Returns when the reader has gone."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
