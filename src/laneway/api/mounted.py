"""The API as a part of somebody else's application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send


class Mounted:
    """An ASGI application with a database of its own, which is connected to by the first request.

    Frameworks tell only the outermost application when they end: whoever mounts this one ends it.
    Served by itself, it does so on its own.
    """

    def __init__(self, make: Callable[[], FastAPI], ended: Callable[[], Awaitable[None]]) -> None:
        self._make = make
        self._ended = ended
        self.renew()

    def renew(self) -> None:
        """Begins anew after `close`."""
        self.app = self._make()

    def end_streams(self) -> None:
        """Lets the readers of streams go, who would keep a server from stopping."""
        self.app.state.hub.end_streams()

    async def close(self) -> None:
        """Ends what goes on and closes the connections; later requests are answered 503."""
        await self.app.state.close()
        await self.app.state.database.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._ended()
        await send({"type": "lifespan.shutdown.complete"})
