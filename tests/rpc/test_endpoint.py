"""Addresses and credentials of a server: a token is sent only to its server."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from laneway.errors import ConfigError, DatabaseUnavailable, InvalidInput
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.rpc.worker.endpoint import Endpoint
from tests.rpc.certificates import make_certificate
from tests.rpc.scripted_server import TOKEN, ScriptedServer


@pytest.mark.parametrize(
    "address, is_plain",
    [
        ("127.0.0.1:8421", True),
        ("127.1.2.3:8421", True),
        ("localhost:8421", True),
        ("[::1]:8421", True),
        ("10.0.0.1:8421", False),
        ("jobs.example:8421", False),
        ("[2001:db8::1]:8421", False),
        ("127.0.0.1.example:8421", False),
    ],
)
def test_plain_text_goes_to_this_machine_only(address: str, is_plain: bool, tmp_path: Path) -> None:
    assert Endpoint.to(address, TOKEN).is_plain_to(address) == is_plain
    assert Endpoint.to(address, TOKEN, plaintext=True).is_plain_to(address)
    ca = tmp_path / "ca.pem"
    ca.write_text("-----BEGIN CERTIFICATE-----\n")
    assert not Endpoint.to(address, TOKEN, tls_ca=str(ca)).is_plain_to(address)


@pytest.mark.parametrize(
    "server",
    ["", "a", "a:", ":1", "a:0", "a:65536", "http://a:1", "a:1/path", "a:1,", "a:1,,b:2", "a b:1",
     "[::1]", "::1:1"],
)  # fmt: skip
def test_invalid_address_is_refused_by_name(server: str) -> None:
    with pytest.raises(InvalidInput, match="server: must be host:port"):
        Endpoint.to(server, TOKEN)


def test_several_addresses_are_kept_in_order() -> None:
    assert Endpoint.to("b:2, a:1", TOKEN).addresses == ("b:2", "a:1")


def test_token_is_never_shown(tmp_path: Path) -> None:
    link = Endpoint.to("a:1", TOKEN)
    assert TOKEN not in repr(link)
    for wrong in ("", "two words", TOKEN + "\nmore", "ä"):
        with pytest.raises(ConfigError) as raised:
            Endpoint.to("a:1", wrong)
        assert not wrong or wrong not in str(raised.value)
    (tmp_path / "json").write_text(json.dumps({"token": TOKEN}))
    with pytest.raises(ConfigError, match="must be exactly") as raised:
        Endpoint.to("a:1", token_file=str(tmp_path / "json"))
    assert TOKEN not in str(raised.value)


def test_token_in_a_file_is_read_again_and_one_that_was_given_is_not(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    of_file, given = Endpoint.to("a:1", token_file=str(file)), Endpoint.to("a:1", TOKEN)
    beside = Endpoint.to("a:1", TOKEN, token_file=str(file))
    decoded = Endpoint.of(json.loads(json.dumps(of_file.to_dict())))
    file.write_text("lw_new")
    for link in (of_file, given, beside, decoded):
        link.token.renew()
    assert of_file.token.metadata == decoded.token.metadata == (("authorization", "Bearer lw_new"),)
    assert given.token.metadata == beside.token.metadata == (("authorization", f"Bearer {TOKEN}"),)
    file.unlink()
    of_file.token.renew()
    assert of_file.token.metadata == (("authorization", "Bearer lw_new"),)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ConfigError, match="tokens create"):
        Endpoint.to("a:1")
    with pytest.raises(ConfigError, match=f"token file: cannot read {missing}: No such file"):
        Endpoint.to("a:1", token_file=missing)
    with pytest.raises(ConfigError, match=f"tls_ca: cannot read {missing}: No such file"):
        Endpoint.to("a:1", TOKEN, tls_ca=missing)
    (tmp_path / "text").write_text("no certificate")
    with pytest.raises(ConfigError, match="holds no certificate"):
        Endpoint.to("a:1", TOKEN, tls_ca=str(tmp_path / "text"))
    with pytest.raises(InvalidInput, match="plaintext"):
        Endpoint.to("a:1", TOKEN, tls_ca=missing, plaintext=True)


async def test_token_goes_only_to_a_server_that_shows_a_trusted_certificate(
    tmp_path: Path,
) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, theirs = make_certificate(tmp_path / "ours"), make_certificate(tmp_path / "theirs")
    links = {"plain": None, "theirs": str(theirs[0]), "ours": str(ours[0])}
    async with ScriptedServer(ours) as server:
        for name, tls_ca in links.items():
            connection = ReplicaConnection(Endpoint.to(server.address, TOKEN, tls_ca=tls_ca))
            if name == "ours":
                await connection.check(str(uuid4()))
            else:
                message = "TLS: .*certificate" if name == "theirs" else "127.0.0.1"
                with pytest.raises(DatabaseUnavailable, match=message):
                    await connection.check(str(uuid4()))
            await connection.close()
            assert server.tokens == ({f"Bearer {TOKEN}"} if name == "ours" else set())


async def test_server_without_tls_is_reported(tmp_path: Path) -> None:
    trusted = str(make_certificate(tmp_path)[0])
    async with ScriptedServer() as server:
        connection = ReplicaConnection(Endpoint.to(server.address, TOKEN, tls_ca=trusted))
        with pytest.raises(DatabaseUnavailable, match="TLS: the server does not use it"):
            await connection.check(str(uuid4()))
        await connection.close()
