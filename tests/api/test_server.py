"""Anonymous connections: deadlines for the start of a request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI

from laneway.api.http import protocol
from laneway.api.http.connections import Connections
from laneway.api.http.server import IDLE_S, Serving, check_tls, listen
from laneway.config.settings import Settings
from laneway.errors import ConfigError
from tests.api.conftest import People, serve

HEAD = b"GET /healthz HTTP/1.1\r\nHost: test\r\n"
PATIENCE_S = 60.0


@pytest.fixture
async def port(app: FastAPI) -> AsyncIterator[int]:
    async with contextlib.aclosing(served(app)) as ports:
        async for port in ports:
            yield port


async def served(app: FastAPI) -> AsyncGenerator[int]:
    bound = listen("127.0.0.1", 0)
    serving = Serving(app, bound, 1.0)
    served = asyncio.create_task(serving.run())
    yield bound.getsockname()[1]
    serving.stopping.set()
    await served
    bound.close()


async def answer_to(port: int, *parts: bytes) -> bytes:
    """Read until the server closes the connection."""
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


async def test_head_without_end_is_not_read_to_its_end(port: int) -> None:
    for line in (b"x: ", b"", b"GET /" + b"x" * 100):
        part = line + b"x" * 32_000
        sent = (b"", part) if line.startswith(b"GET") else (HEAD + line, part)
        response = await answer_to(port, *sent, *[b"x" * 32_000] * 20)
        assert response.startswith(b"HTTP/1.1 400 ") or response == b""
    ended = HEAD + b"x: " + b"x" * 30_000 + b"\r\nConnection: close\r\n\r\n"
    assert (await answer_to(port, ended)).startswith(b"HTTP/1.1 200 ")


async def test_malformed_request_gets_problem_with_id(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway.api")
    response = await answer_to(port, b"what is this?\r\n\r\n")
    head, _, body = response.partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (400, "bad_request")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert fields["content-type"] == "application/problem+json"
    assert fields["x-request-id"] == problem["request_id"]
    assert int(fields["content-length"]) == len(body)
    assert problem["request_id"] in {one.__dict__.get("request_id") for one in caplog.records}


async def test_connection_without_request_is_closed_in_time(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"\r\n")
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
    monkeypatch.setattr(protocol, "MAX_S", 0.2)
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
    """Longer than the deadline of a head, and than those of load balancers."""
    assert max(60, protocol.MAX_S) < IDLE_S
    used = []
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        # The first request has the usual time; a deadline would begin after the second.
        for most_s, pause_s in ((protocol.MAX_S, 0.0), (0.05, 0.2), (protocol.MAX_S, 0.0)):
            monkeypatch.setattr(protocol, "MAX_S", most_s)
            answer = await client.get("/healthz")
            used.append(answer.extensions["network_stream"].get_extra_info("client_addr"))
            await asyncio.sleep(pause_s)
    assert len(used) == 3
    assert len(set(used)) == 1


async def test_large_body_does_not_count_as_head(port: int, people: People) -> None:
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
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST /jobs HTTP/1.1\r\nHost: test\r\n{lines}Content-Length: {len(body)}\r\n".encode()
    last = HEAD + b"Connection: close\r\n\r\n"
    response = await answer_to(port, head, b"\r\n" + body + last[:20], last[20:])
    assert response.count(b"HTTP/1.1 202 ") == response.count(b"HTTP/1.1 200 ") == 1


# -- bodies that do not come, and too many connections -----------------------------------------


def unfinished(token: str | None = None) -> bytes:
    lines = ["POST /jobs HTTP/1.1", "Host: test", "Content-Length: 100000"]
    if token is not None:
        lines += [f"Authorization: Bearer {token}", "Content-Type: application/json"]
    return "\r\n".join([*lines, "", '{"job']).encode()


async def test_early_answer_does_not_wait_for_the_body(port: int) -> None:
    answer = await answer_to(port, unfinished())
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer


async def test_body_of_a_known_caller_has_a_deadline(dsn: str, people: People) -> None:
    ann = people.new("ann", "submitter")
    async with contextlib.aclosing(serve(dsn, body_timeout=0.2)) as apps:
        async for app in apps:
            async with contextlib.aclosing(served(app)) as ports:
                async for port in ports:
                    answer = await answer_to(port, unfinished(ann.token))
                    assert answer.startswith(b"HTTP/1.1 408 ")
                    assert b'"code":"request_timeout"' in answer


async def test_others_are_served_while_anonymous_callers_hold_connections(dsn: str) -> None:
    async with contextlib.aclosing(serve(dsn, max_connections=16)) as apps:
        async for app in apps:
            async with contextlib.aclosing(served(app)) as ports:
                async for port in ports:
                    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
                    for _, writer in held[::2]:
                        writer.write(HEAD)
                    for _ in range(5):
                        answer = await answer_to(port, HEAD + b"Connection: close\r\n\r\n")
                        assert answer.startswith(b"HTTP/1.1 200 ")
                    for _, writer in held:
                        writer.close()


class Place:
    def __init__(self, *, is_waiting: bool) -> None:
        self.is_waiting = is_waiting
        self.is_dropped = False

    def drop(self) -> None:
        self.is_dropped = True


def test_one_address_holds_only_so_many_connections() -> None:
    places = Connections(Settings.load(max_connections_per_address=2, trusted_proxies="192.0.2.9"))
    busy = [Place(is_waiting=False) for _ in range(2)]
    assert all(places.add("192.0.2.1", one) for one in busy)
    assert not places.add("192.0.2.1", Place(is_waiting=False))
    assert places.add("192.0.2.2", Place(is_waiting=False))
    places.remove("192.0.2.1", busy[0])
    waits = Place(is_waiting=True)
    assert places.add("192.0.2.1", waits)
    assert places.add("192.0.2.1", Place(is_waiting=False))
    assert waits.is_dropped
    for address in ("127.0.0.1", "192.0.2.9"):
        assert all(places.add(address, Place(is_waiting=False)) for _ in range(5)), address


def test_plain_http_serves_other_machines_only_behind_proxy(tmp_path: Path) -> None:
    check_tls(Settings.load(), "127.0.0.1")
    check_tls(Settings.load(behind_tls_proxy=True), "192.0.2.1")
    with pytest.raises(ConfigError, match="--tls-cert"):
        check_tls(Settings.load(), "192.0.2.1")
    with pytest.raises(ConfigError, match="both or neither"):
        check_tls(Settings.load(tls_cert=tmp_path / "cert"), "127.0.0.1")
    both = Settings.load(tls_cert=tmp_path / "cert", tls_key=tmp_path / "key")
    with pytest.raises(ConfigError, match="cannot be read"):
        check_tls(both, "192.0.2.1")


async def test_forwarded_address_is_believed_of_trusted_proxies_only(
    dsn: str, people: People, conn: psycopg.Connection[Any]
) -> None:
    nobody = people.new("nobody")
    for trusted, address in (("", "127.0.0.1"), ("127.0.0.1", "192.0.2.77")):
        async with contextlib.aclosing(serve(dsn, trusted_proxies=trusted)) as apps:
            async for app in apps:
                async with contextlib.aclosing(served(app)) as ports:
                    async for port in ports:
                        url = f"http://127.0.0.1:{port}/jobs"
                        headers = {**nobody.headers, "X-Forwarded-For": "192.0.2.77"}
                        async with httpx2.AsyncClient() as client:
                            assert (await client.get(url, headers=headers)).status_code == 403
        row = conn.execute("select address from laneway.audit order by id desc").fetchone()
        assert row == (address,)


async def test_browser_logs_in_through_a_proxy_that_ends_tls(dsn: str) -> None:
    for is_behind, status in ((False, 403), (True, 401)):
        async with contextlib.aclosing(serve(dsn, behind_tls_proxy=is_behind)) as apps:
            async for app in apps:
                async with contextlib.aclosing(served(app)) as ports:
                    async for port in ports:
                        url, origin = f"http://127.0.0.1:{port}/login", "https://jobs.example.org"
                        headers = {"Host": "jobs.example.org", "Origin": origin}
                        async with httpx2.AsyncClient() as client:
                            answer = await client.post(url, data={"link": "x"}, headers=headers)
                        assert answer.status_code == status, answer.text
