"""The demo's server: HTTP API and dashboard, and gRPC for its remote worker, in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Final

from laneway import Laneway
from laneway.app.laneway import make_api
from laneway.app.server import make_rpc, print_link
from laneway.control import sessions
from laneway.demo.people import ADMIN, actor
from laneway.errors import ConfigError
from laneway.extras import is_installed

HOST: Final = "127.0.0.1"


@dataclass(frozen=True)
class DemoServer:
    """A running server: the address for browsers, and that for remote workers, if any."""

    url: str
    grpc: str | None


@contextlib.asynccontextmanager
async def serve(
    lw: Laneway, port: int | None, echo: Callable[[str], None], *, open_browser: bool
) -> AsyncIterator[DemoServer]:
    """Serve until the end of the block; print the login link as soon as it works."""
    from laneway.api.http.server import Serving, url_of

    with _listen(port, lw.settings.server_port) as bound:
        app = make_api(lw.database.dsn, lw.settings, lw)
        serving = Serving(app, bound, 1.0)
        running = asyncio.ensure_future(serving.run())
        try:
            url = url_of(bound)
            link = await sessions.bootstrap(app.state.database, actor(ADMIN, "cli"))
            if link is not None:
                print_link(echo, url, link, open_browser=open_browser)
            async with contextlib.AsyncExitStack() as stack:
                grpc = None
                if is_installed("grpc"):
                    rpc = make_rpc(lw.database.dsn, lw.settings, app)
                    grpc = rpc.listen(HOST, 0)
                    await rpc.start()
                    stack.push_async_callback(partial(rpc.stop, 0))
                yield DemoServer(url, grpc)
        finally:
            serving.on_signal()
            serving.on_signal()
            await running
            await app.state.database.close()


def _listen(port: int | None, usual: int) -> socket:
    """Listen on the given port; without one on the usual port, or on any if that is taken."""
    from laneway.api.http.server import listen

    if port is not None:
        return listen(HOST, port)
    try:
        return listen(HOST, usual)
    except ConfigError:
        return listen(HOST, 0)
