"""A server in a thread, for clients that wait without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from laneway.api.app import make_app
from laneway.api.http.server import Serving, listen, url_of
from laneway.config.settings import Settings
from laneway.store.database import Database


@contextmanager
def served(dsn: str, port: int = 0) -> Iterator[str]:
    """Serve the API of a database in a thread."""
    bound = listen("127.0.0.1", port)
    ready: list[tuple[asyncio.AbstractEventLoop, Serving]] = []

    async def serve() -> None:
        database = Database(dsn, Settings.load(database_url=dsn), role="tests server")
        serving = Serving(make_app(database.settings, database), bound, 1.0)
        ready.append((asyncio.get_running_loop(), serving))
        is_ready.set()
        await serving.run()
        await database.close()

    is_ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(120)
    try:
        yield url_of(bound)
    finally:
        loop, serving = ready[0]
        loop.call_soon_threadsafe(serving.stopping.set)
        thread.join(30)
