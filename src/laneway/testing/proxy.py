"""A TCP proxy between a program and its database that cuts, swallows or delays.

async with Proxy("127.0.0.1", 5432) as proxy:
    dsn = f"postgresql://app@{proxy.host}:{proxy.port}/app"
    proxy.cut()                        # reset every connection now
    proxy.cut_when(b"COMMIT")          # reset the next connection that sends this
    proxy.blackhole()                  # hold back all bytes, connections stay open
    proxy.swallow()                    # lose all bytes, on the existing connections
    proxy.swallow_when(b"commit")      # lose all bytes, on the next connection that sends this
    proxy.delay(0.2)                   # delay every chunk
    proxy.heal()
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

_CHUNK = 65536


class _Link:
    """One connection through the proxy: a pump each way."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._writers = (client, server)
        self.is_swallowed = False

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


class Proxy:
    """Forwards bytes until a fault is injected."""

    def __init__(
        self, target: str, target_port: int | None = None, *, host: str = "127.0.0.1"
    ) -> None:
        """`target` is a host with a port, or the path of a Unix socket without one."""
        self._target = target
        self._target_port = target_port
        self.host = host
        self.port = 0
        self.cuts = 0
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._delay_s = 0.0
        self._needle: bytes | None = None
        self._is_needle_swallowed = False
        self.swallowed = asyncio.Event()
        self._is_open = asyncio.Event()
        self._is_open.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._links)

    # Faults -----------------------------------------------------------------------------------

    def cut(self) -> int:
        """Resets every connection and returns their number; new ones work."""
        links, self._links = self._links, set()
        for link in links:
            link.cut()
        self.cuts += len(links)
        return len(links)

    def cut_when(self, needle: bytes) -> None:
        """Resets the next connection whose client sends these bytes; the server never gets them."""
        self._needle, self._is_needle_swallowed = needle, False

    def swallow_when(self, needle: bytes) -> None:
        """Loses these bytes and all later ones on the next connection whose client sends them.

        Then sets `swallowed`.
        """
        self._needle, self._is_needle_swallowed = needle, True
        self.swallowed.clear()

    def blackhole(self) -> None:
        """Holds back all bytes, on old and new connections, without closing any."""
        self._is_open.clear()

    def swallow(self) -> int:
        """Loses all further bytes and closes on the existing connections; new ones work.

        Returns the number of existing connections.
        """
        for link in self._links:
            link.is_swallowed = True
        return len(self._links)

    def delay(self, seconds: float) -> None:
        """Delays every chunk, in both directions."""
        self._delay_s = seconds

    def heal(self) -> None:
        """Forwards everything again; bytes that a blackhole held back arrive late, as with TCP."""
        self._needle = None
        self._delay_s = 0.0
        self._is_open.set()

    # Forwarding -------------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._link(reader, writer)
        writer.transport.abort()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._is_open.wait()
        if self._target_port is None:
            server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        else:
            server_reader, server_writer = await asyncio.open_connection(
                self._target, self._target_port
            )
        link = _Link(writer, server_writer)
        self._links.add(link)
        pumps = [
            asyncio.ensure_future(self._pump(link, reader, server_writer, is_client=True)),
            asyncio.ensure_future(self._pump(link, server_reader, writer, is_client=False)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if link.is_swallowed:
                # The close of one side is lost too.
                await asyncio.wait(pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links.discard(link)
            server_writer.transport.abort()

    async def _pump(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_client: bool,
    ) -> None:
        tail = b""
        while data := await reader.read(_CHUNK):
            await self._is_open.wait()
            if link.is_swallowed:
                continue
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            if is_client and self._needle is not None:
                seen = tail + data
                if self._needle in seen:
                    self._needle = None
                    if self._is_needle_swallowed:
                        link.is_swallowed = True
                        self.swallowed.set()
                        continue
                    self.cuts += 1
                    link.cut()
                    return
                tail = seen[-len(self._needle) :]
            writer.write(data)
            await writer.drain()
        if link.is_swallowed:
            return
        # PostgreSQL's protocol does not use half-closed connections: one close ends both sides.
        with contextlib.suppress(OSError):
            writer.write_eof()
