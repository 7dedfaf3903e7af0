"""One hostile request as data: its name, its interface, how to send it, its allowed responses."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import psycopg

Interface = Literal["http", "sse", "mcp", "grpc", "sql", "tls"]
# No response: the server closed the connection.
CLOSED = 0


@dataclass(frozen=True)
class Reply:
    """The response to a case: a status (a word for interfaces other than HTTP) and its text."""

    status: int | str
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Target:
    """The server under test, callers with tokens, and secrets that no response may contain."""

    host: str
    port: int
    grpc_port: int
    pid: int
    dsn: str
    tokens: dict[str, str]
    secrets: tuple[str, ...]
    jobs: dict[str, str]

    def connection(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, autocommit=True)


Send = Callable[[Target], Awaitable[Reply]]


@dataclass(frozen=True)
class Case:
    """A hostile request. `expected`: the allowed statuses; any other is an escape.

    `cpu_s`, `memory_mb`: the most that the server may use for it. `patience_s` ends a request that
    would never end.
    """

    name: str
    interface: Interface
    send: Send
    expected: tuple[int | str, ...]
    cpu_s: float = 1.0
    memory_mb: float = 64.0
    patience_s: float = 120.0


Body = bytes | Callable[[Target], bytes]


def request_bytes(
    target: Target,
    method: str,
    path: str,
    who: str | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> bytes:
    """The bytes of one HTTP/1.1 request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test", "Connection: close"]
    if who is not None:
        lines.append(f"Authorization: Bearer {target.tokens.get(who, who)}")
    given = {"Content-Type": "application/json", **(headers or {})}
    if "Transfer-Encoding" not in given:
        given.setdefault("Content-Length", str(len(body)))
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body


async def exchange(target: Target, *parts: bytes, pause_s: float = 0.0) -> Reply:
    """Send the parts, read until the server closes; CLOSED without a response."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    answer = b""

    async def read() -> None:
        nonlocal answer
        with contextlib.suppress(ConnectionError):
            while got := await reader.read(65536):
                answer += got

    reading = asyncio.ensure_future(read())
    try:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                if reading.done():
                    break
                writer.write(part)
                await writer.drain()
                if pause_s:
                    await asyncio.wait({reading}, timeout=pause_s)
        await reading
    finally:
        reading.cancel()
        writer.close()
    return parse(answer)


def parse(answer: bytes) -> Reply:
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 "):
        return Reply(CLOSED, answer.decode("utf-8", "replace"))
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    return Reply(int(first.split()[1]), body.decode("utf-8", "replace"), headers)


def http(
    name: str,
    method: str,
    path: str | Callable[[Target], str],
    *expected: int | str,
    who: str | None = None,
    body: Body | object = b"",
    headers: Mapping[str, str] | None = None,
    interface: Interface = "http",
    cpu_s: float = 1.0,
    memory_mb: float = 64.0,
) -> Case:
    """A case of one request; a body that is neither bytes nor callable is sent as JSON."""

    async def send(target: Target) -> Reply:
        made = body(target) if callable(body) else body
        raw = made if isinstance(made, bytes) else json.dumps(made).encode()
        where = path(target) if callable(path) else path
        return await exchange(target, request_bytes(target, method, where, who, headers, raw))

    return Case(name, interface, send, expected, cpu_s, memory_mb)


def raw(name: str, *parts: bytes, expected: tuple[int | str, ...], pause_s: float = 0.0) -> Case:
    """A case of arbitrary bytes."""

    async def send(target: Target) -> Reply:
        return await exchange(target, *parts, pause_s=pause_s)

    return Case(name, "http", send, expected)
