"""TLS: a handshake has a deadline."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path

import httpx2
import pytest

from laneway.api import server
from tests.api.conftest import serve
from tests.api.test_server import served
from tests.rpc.certificates import make_certificate

PATIENCE_S = 60.0


async def serve_tls(dsn: str, tmp_path: Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """A server with a certificate: its port, and what a client trusts."""
    cert, key = make_certificate(tmp_path)
    async with aclosing(serve(dsn, tls_cert=cert, tls_key=key)) as apps:
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
