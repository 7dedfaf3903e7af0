"""The API mounted inside another application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send


class Mounted:
    """An ASGI application with its own database, which connects on the first request.

    Frameworks send lifespan events only to the outermost application, so the code that mounts this
    one must close it. Served alone, it closes itself.
    """

    def __init__(self, make: Callable[[], FastAPI], on_end: Callable[[], Awaitable[None]]) -> None:
        self._make = make
        self._on_end = on_end
        self.reset()

    def reset(self) -> None:
        """Make it usable again after `close`."""
        self.app = self._make()

    @property
    def is_closed(self) -> bool:
        """Whether requests get 503 because it was closed."""
        return bool(self.app.state.database.is_closed)

    def end_streams(self) -> None:
        """End open streams, which would keep a server from stopping."""
        self.app.state.hub.end_streams()

    async def close(self) -> None:
        """Stop background work and close the connections; later requests get 503."""
        await self.app.state.close()
        await self.app.state.database.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._on_end()
        await send({"type": "lifespan.shutdown.complete"})
