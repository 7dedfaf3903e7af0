"""The proxy forwards bytes unchanged until a test cuts, drops or delays them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from laneway.testing.proxy import Proxy


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """An echo server."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(1000):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with echo() as port, Proxy("127.0.0.1", port) as proxy:
        yield proxy


class Link:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self, size: int, within_s: float = 60.0) -> bytes:
        async with asyncio.timeout(within_s):
            return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.transport.abort()


@contextlib.asynccontextmanager
async def link(proxy: Proxy) -> AsyncIterator[Link]:
    one = Link(*await asyncio.open_connection(proxy.host, proxy.port))
    try:
        yield one
    finally:
        one.close()


async def test_bytes_pass_both_ways(proxy: Proxy) -> None:
    async with link(proxy) as one:
        data = bytes(range(256)) * 2000
        await one.send(data)
        assert await one.receive(len(data)) == data


async def test_cut_ends_every_connection_and_lets_new_ones_through(proxy: Proxy) -> None:
    async with link(proxy) as one, link(proxy) as other:
        for each in (one, other):
            await each.send(b"x")
            await each.receive(1)
        assert proxy.cut() == 2
        for each in (one, other):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await each.receive(1)
    async with link(proxy) as new:
        await new.send(b"y")
        assert await new.receive(1) == b"y"


async def test_cut_at_word_happens_before_word_arrives(proxy: Proxy) -> None:
    async with link(proxy) as one:
        proxy.cut_when(b"COMMIT")
        await one.send(b"BEGIN")
        assert await one.receive(5) == b"BEGIN"
        await one.send(b"COM")
        assert await one.receive(3) == b"COM"
        await one.send(b"MIT")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await one.receive(1)
    assert proxy.cuts == 1


async def test_blackhole_keeps_the_connection_and_swallows_the_bytes(proxy: Proxy) -> None:
    async with link(proxy) as one:
        await one.send(b"x")
        await one.receive(1)
        proxy.blackhole()
        await one.send(b"y")
        with pytest.raises(TimeoutError):
            await one.receive(1, 0.1)
        proxy.heal()
        assert await one.receive(1) == b"y"


async def test_one_connection_is_silent_from_certain_bytes_on_and_others_work(
    proxy: Proxy,
) -> None:
    async with link(proxy) as one, link(proxy) as other:
        proxy.swallow_when(b"commit")
        await one.send(b"begin")
        assert await one.receive(5) == b"begin"
        assert not proxy.swallowed.is_set()
        await one.send(b"commit")
        async with asyncio.timeout(5):
            await proxy.swallowed.wait()
        await one.send(b"more")
        await other.send(b"commit")
        assert await other.receive(6) == b"commit"
        with pytest.raises(TimeoutError):
            await one.receive(1, 0.1)


async def test_delay_holds_back_each_way(proxy: Proxy) -> None:
    async with link(proxy) as one:
        await one.send(b"x")
        await one.receive(1)
        proxy.delay(0.1)
        began = time.monotonic()
        await one.send(b"y")
        assert await one.receive(1) == b"y"
        assert time.monotonic() - began >= 0.2


async def test_close_of_one_end_reaches_the_other(proxy: Proxy) -> None:
    async with link(proxy) as one:
        await one.send(b"x")
        await one.receive(1)
    async with asyncio.timeout(60):
        while proxy.connections:  # noqa: ASYNC110 - the other end sends no notice
            await asyncio.sleep(0.01)
