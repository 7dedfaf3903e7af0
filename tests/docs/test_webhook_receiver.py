"""The receiver of the page on webhooks refuses requests that Laneway has not signed."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import secrets
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.docs.test_code_blocks import ROOT, read_blocks

BODY = json.dumps({"type": "job.completed", "data": {"job_type": "ingest"}}).encode()
KEY = secrets.token_bytes(32)


@pytest.fixture(scope="module")
def sample() -> dict[str, Any]:
    page = ROOT / "docs" / "howto" / "webhooks.md"
    (block,) = [block for block in read_blocks(page) if block.title == "receiver.py"]
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(block.code, str(page), "exec"), names)  # noqa: S102 - our own document
    names["SECRETS"].append("whsec_" + base64.b64encode(KEY).decode())
    return names


@pytest.fixture(scope="module")
def port(sample: dict[str, Any]) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), sample["Receiver"]) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def signed(sent_at: float) -> dict[str, str]:
    """The headers of a request that Laneway sends at that time."""
    text = b"an-id.%d." % sent_at + BODY
    signature = base64.b64encode(hmac.digest(KEY, text, "sha256")).decode()
    return {
        "webhook-id": "an-id",
        "webhook-timestamp": str(int(sent_at)),
        "webhook-signature": f"v1,{signature}",
    }


def status_of(port: int, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/", BODY, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_signed_request_is_accepted(port: int, sample: dict[str, Any]) -> None:
    assert status_of(port, signed(time.time())) == 204
    assert sample["ended"] == [("job.completed", "ingest")]


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_request_without_a_header_of_the_signature_gets_401(port: int, missing: str) -> None:
    headers = signed(time.time())
    del headers[missing]
    assert status_of(port, headers) == 401


@pytest.mark.parametrize("sent_at", ["", "now", "1e9", "nan", "9" * 1000, "9" * 5000])
def test_request_with_an_unusable_timestamp_gets_401(port: int, sent_at: str) -> None:
    assert status_of(port, signed(time.time()) | {"webhook-timestamp": sent_at}) == 401


@pytest.mark.parametrize("signature", ["", "v1,", "v1,é", "no signature"])
def test_request_with_a_wrong_signature_gets_401(port: int, signature: str) -> None:
    assert status_of(port, signed(time.time()) | {"webhook-signature": signature}) == 401


def test_old_request_gets_401(port: int) -> None:
    assert status_of(port, signed(time.time() - 400)) == 401
