"""TLS: a handshake has a deadline."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvloop

from laneway.api.http import server
from tests.api.conftest import serve
from tests.api.test_server import served
from tests.rpc.certificates import make_certificate

PATIENCE_S = 60.0


async def serve_tls(
    dsn: str, tmp_path: Path, **settings: Any
) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """A server with a certificate: its port, and the client's trust store."""
    cert, key = make_certificate(tmp_path)
    async with aclosing(serve(dsn, tls_cert=cert, tls_key=key, **settings)) as apps:
        async for app in apps:
            async with aclosing(served(app)) as ports:
                async for port in ports:
                    yield port, ssl.create_default_context(cafile=cert)


async def ask(port: int, trusted: ssl.SSLContext) -> int:
    async with httpx2.AsyncClient(verify=trusted, timeout=PATIENCE_S) as client:
        return (await client.get(f"https://127.0.0.1:{port}/healthz")).status_code


async def test_requests_are_answered_over_tls(dsn: str, tmp_path: Path) -> None:
    async for port, trusted in serve_tls(dsn, tmp_path):
        for _ in range(3):
            assert await ask(port, trusted) == 200


async def test_handshake_that_does_not_come_is_cut_off(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.5)
    async for port, trusted in serve_tls(dsn, tmp_path):
        async with asyncio.timeout(PATIENCE_S / 2):
            for sent in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(sent)
                with suppress(ConnectionError):
                    await reader.read()
                writer.close()
        assert isinstance(trusted, ssl.SSLContext)


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_silent_handshakes_hold_no_more_than_their_places(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_loop: Any
) -> None:
    # No deadline ends them.
    monkeypatch.setattr(server, "HANDSHAKE_S", 600.0)

    async def flood() -> None:
        async for port, trusted in serve_tls(dsn, tmp_path, max_connections=20):
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
            ends = {asyncio.ensure_future(_end(reader)) for reader, _ in opened}
            ended = 0
            while ended < 40:
                done, ends = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                ended += len(done)
            assert await ask(port, trusted) == 200
            for end in ends:
                end.cancel()
            for _, writer in opened:
                writer.close()

    async def in_time() -> None:
        # Neither the response nor the stop waits for a handshake.
        async with asyncio.timeout(PATIENCE_S):
            await flood()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(in_time())


async def _end(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        await reader.read()
