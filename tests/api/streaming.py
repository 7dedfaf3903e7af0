"""A reader of streams in process, over ASGI, event by event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import FastAPI

from laneway.api.http.auth import COOKIE
from tests.api.conftest import Principal

PATIENCE_S = 60.0


class StreamEvent(NamedTuple):
    """One event."""

    id: str
    name: str
    data: Any

    @property
    def number(self) -> int:
        """The id of the job of this event."""
        return int(self.id.partition(".")[0])


class Reading:
    """An open stream; `status` and `headers` are known from the start."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._text = ""
        self._started = asyncio.Event()
        self.gone = asyncio.Event()
        # While this is clear, the stream is not read.
        self.reads = asyncio.Event()
        self.reads.set()
        self.pings = 0

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            self._started.set()
            return
        await self.reads.wait()
        self._parts.put_nowait(message.get("body", b""))
        if not message.get("more_body"):
            self._parts.put_nowait(None)

    async def started(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._started.wait()

    async def next(self) -> StreamEvent | None:
        """The next event; None at the end."""
        async with asyncio.timeout(PATIENCE_S):
            while "\n\n" not in self._text:
                part = await self._parts.get()
                if part is None:
                    return None
                self._text += part.decode()
        block, _, self._text = self._text.partition("\n\n")
        self.pings += block == ": ping"
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line[0] != ":")
        if "data" not in fields:
            return await self.next()
        return StreamEvent(fields["id"], fields["event"], json.loads(fields["data"]))

    async def until(self, name: str) -> list[StreamEvent]:
        """All events up to the first of that name."""
        heard = []
        while (event := await self.next()) is not None:
            heard.append(event)
            if event.name == name:
                return heard
        raise AssertionError(f"ended before {name}: {[e.name for e in heard]}")

    async def rest(self) -> list[StreamEvent]:
        """All events to the end of the stream."""
        heard = []
        while (event := await self.next()) is not None:
            heard.append(event)
        return heard


@asynccontextmanager
async def reading(
    app: FastAPI,
    who: Principal | None,
    path: str,
    *,
    last: str | None = None,
    topics: tuple[str, ...] = (),
    cookie: str | None = None,
) -> AsyncIterator[Reading]:
    """Open a stream, wait for the start of its response, and close it at the end."""
    headers = dict(who.headers) if who else {}
    if last is not None:
        headers["Last-Event-ID"] = last
    if cookie is not None:
        headers["Cookie"] = f"{COOKIE}={cookie}"
    query = urlencode([("topic", topic) for topic in topics])
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path,
        "raw_path": quote(path).encode(), "root_path": "", "server": ("test", 80),
        "client": ("127.0.0.1", 1), "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }  # fmt: skip
    stream = Reading()
    served = asyncio.create_task(app(scope, stream.receive, stream.send))
    try:
        await stream.started()
        yield stream
    finally:
        stream.gone.set()
        stream.reads.set()
        await asyncio.wait_for(served, PATIENCE_S)
