"""A connect that is cancelled half-way."""

from __future__ import annotations

import asyncio

import pytest

from laneway.config.settings import Settings
from laneway.store.database import connect

PATIENCE = 10.0


async def test_connect_cancelled_half_way_is_closed_while_its_error_is_kept() -> None:
    come, gone = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        come.set()
        await reader.read()
        gone.set()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dsn = f"postgresql://me@127.0.0.1:{port}/jobs?sslmode=disable&gssencmode=disable"
        connecting = asyncio.ensure_future(connect(dsn, Settings.load(database_url=dsn), "tests"))
        await come.wait()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError) as kept:
            await connecting
        async with asyncio.timeout(PATIENCE):
            await gone.wait()
        assert kept.value is not None
