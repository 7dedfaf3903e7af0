"""A certificate that is renewed while the server runs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from laneway.config.settings import Settings
from laneway.errors import ConfigError
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc.server.certificate import Certificate
from laneway.store.database import Database
from tests.rpc.certificates import make_certificate
from tests.rpc.rpc_harness import PATIENCE, RpcHarness


async def shown(address: str) -> str:
    """The certificate that a new connection is shown."""
    host, _, port = address.rpartition(":")
    shown = await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))
    return shown.strip()


async def health(channel: grpc.aio.Channel) -> int:
    asked = health_pb2.HealthCheckRequest()
    stub = health_pb2_grpc.HealthStub(channel)
    return int((await stub.Check(asked, timeout=PATIENCE)).status)


async def test_renewed_certificate_is_used_and_broken_one_ignored(
    dsn: str, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = make_certificate(tmp_path)
    given = Settings.load(database_url=dsn, grpc_cert=cert, grpc_key=key)
    async with RpcHarness(dsn, given, database) as rpc:
        first = grpc.ssl_channel_credentials(cert.read_bytes())
        async with grpc.aio.secure_channel(rpc.address, first) as before:
            assert await health(before) == 1
            make_certificate(tmp_path)
            renewed = cert.read_text().strip()
            assert await shown(rpc.address) == renewed
            second = grpc.ssl_channel_credentials(cert.read_bytes())
            async with grpc.aio.secure_channel(rpc.address, second) as after:
                assert await health(after) == 1
            assert await health(before) == 1, "who is connected stays so"
        with caplog.at_level(logging.INFO, "laneway"):
            for broken in (key.read_bytes()[:40], None):
                caplog.clear()
                key.unlink() if broken is None else key.write_bytes(broken)
                for _ in range(3):
                    assert await shown(rpc.address) == renewed
                assert caplog.text.count("stays in use") <= 1
            make_certificate(tmp_path)
            assert await shown(rpc.address) == cert.read_text().strip() != renewed
            assert "grpc_cert: works again" in caplog.text


def complained(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_files_are_read_again_only_when_they_have_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "other").mkdir()
    cert, key = make_certificate(tmp_path)
    _, others = make_certificate(tmp_path / "other")
    made = Certificate(cert, key, LogThrottle(0.0))
    made.credentials()
    assert made.renewed() is None
    own = key.read_bytes()
    # A certificate comes before its key, or the other way round.
    others.replace(key)
    for _ in range(3):
        assert made.renewed() is None
    (message,) = complained(caplog)
    assert "must be a certificate chain and its key" in message
    key.unlink()
    for _ in range(3):
        assert made.renewed() is None
    assert len(complained(caplog)) == 2
    assert "cannot be read (No such file" in complained(caplog)[1]
    key.write_bytes(own)
    assert made.renewed() is not None
    assert made.renewed() is None


def test_next_handshake_reads_latest_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = make_certificate(tmp_path)
    made = Certificate(cert, key, LogThrottle())
    made.credentials()
    load = ssl.SSLContext.load_cert_chain

    def load_meanwhile(*args: Any, **options: Any) -> None:
        monkeypatch.undo()
        key.write_text("")
        try:
            load(*args, **options)
        finally:
            make_certificate(tmp_path)

    make_certificate(tmp_path)
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load_meanwhile)
    assert made.renewed() is None
    assert not complained(caplog)
    assert made.renewed() is not None


def test_at_the_start_there_must_be_one(tmp_path: Path) -> None:
    made = Certificate(tmp_path / "c.pem", tmp_path / "k.pem", LogThrottle())
    with pytest.raises(ConfigError, match=r"grpc_key: .*k.pem cannot be read"):
        made.credentials()
