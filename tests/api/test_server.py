"""Connections of strangers: how long and how slowly a request may begin."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from laneway.api import protocol
from laneway.api.server import IDLE_S, Serving, listen
from tests.api.conftest import People

HEAD = b"GET /healthz HTTP/1.1\r\nHost: test\r\n"
PATIENCE_S = 60.0


@pytest.fixture
async def port(app: FastAPI) -> AsyncIterator[int]:
    bound = listen("127.0.0.1", 0)
    serving = Serving(app, bound, 1.0)
    served = asyncio.create_task(serving.run())
    yield bound.getsockname()[1]
    serving.told.set()
    await served
    bound.close()


async def answer_to(port: int, *parts: bytes) -> bytes:
    """All that comes until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_head_without_end_is_not_read_to_its_end(port: int) -> None:
    for line in (b"x: ", b"", b"GET /" + b"x" * 100):
        part = line + b"x" * 32_000
        sent = (b"", part) if line.startswith(b"GET") else (HEAD + line, part)
        told = await answer_to(port, *sent, *[b"x" * 32_000] * 20)
        assert told.startswith(b"HTTP/1.1 400 ") or told == b""
    ended = HEAD + b"x: " + b"x" * 30_000 + b"\r\nConnection: close\r\n\r\n"
    assert (await answer_to(port, ended)).startswith(b"HTTP/1.1 200 ")


async def test_what_is_no_request_is_answered_by_a_problem_with_an_id(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway.api")
    told = await answer_to(port, b"what is this?\r\n\r\n")
    head, _, body = told.partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (400, "bad_request")
    said = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert said["content-type"] == "application/problem+json"
    assert said["x-request-id"] == problem["request_id"]
    assert int(said["content-length"]) == len(body)
    assert problem["request_id"] in {one.__dict__.get("request_id") for one in caplog.records}


async def test_who_begins_no_request_in_time_is_cut_off(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"\r\n")
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
    monkeypatch.setattr(protocol, "MOST_S", 0.2)
    assert await answer_to(port) == b""
    assert await answer_to(port, HEAD) == b""
    # Also on a connection that has been used before.
    writer.write(HEAD)
    await reader.read()
    writer.close()
    await writer.wait_closed()


async def test_between_two_requests_there_is_time(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than for the head of one, and more than load balancers give."""
    assert max(60, protocol.MOST_S) < IDLE_S
    used = []
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        # The first request has the usual time; a deadline would begin after the second.
        for most_s, pause_s in ((protocol.MOST_S, 0.0), (0.05, 0.2), (protocol.MOST_S, 0.0)):
            monkeypatch.setattr(protocol, "MOST_S", most_s)
            answer = await client.get("/healthz")
            used.append(answer.extensions["network_stream"].get_extra_info("client_addr"))
            await asyncio.sleep(pause_s)
    assert len(used) == 3
    assert len(set(used)) == 1


async def test_a_large_body_is_no_head(port: int, people: People) -> None:
    ann = people.new("ann", "submitter")

    async def parts() -> AsyncIterator[bytes]:
        yield b'{"job_type": "greet", "payload": {"a": "'
        for _ in range(5):
            yield b"x" * 100_000
        yield b'"}}'

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        headers = {**ann.headers, "Content-Type": "application/json"}
        for _ in range(2):
            answer = await client.post("/jobs", content=parts(), headers=headers)
            assert answer.status_code == 202, answer.text
    body = b'{"job_type": "greet", "payload": {"a": "' + b"x" * 500_000 + b'"}}'
    said = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST /jobs HTTP/1.1\r\nHost: test\r\n{said}Content-Length: {len(body)}\r\n".encode()
    last = HEAD + b"Connection: close\r\n\r\n"
    told = await answer_to(port, head, b"\r\n" + body + last[:20], last[20:])
    assert told.count(b"HTTP/1.1 202 ") == told.count(b"HTTP/1.1 200 ") == 1
