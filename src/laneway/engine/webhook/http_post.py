"""One HTTP POST request to a checked address, without redirects, proxies and cookies.

The standard library has no asynchronous client, and the core has no HTTP package.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Final
from urllib.parse import SplitResult, urlsplit

from laneway.engine.webhook.targets import AllowedTargets

# The head of a response, and the part of its body that is read.
HEAD_BYTES: Final = 16 * 1024
BODY_BYTES: Final = 1000
BODY_S: Final = 1.0
# Then the next address of the host is tried; the last one has all the time that is left.
CONNECT_S: Final = 3.0
MOST_INTERIM: Final = 10
# A name server that is silent holds a thread for half a minute, longer than a request may take.
RESOLVERS: Final = 32
# The longest Retry-After that counts.
LONGEST_AFTER_S: Final = 86_400.0
_CURE: Final = (
    "set LANEWAY_WEBHOOK_ALLOW to allow the host or its network, for every worker and server that"
    " sends, and restart them"
)


class RequestFailed(Exception):
    """The request may not be sent there, or no response came, or none that is HTTP."""


@dataclass(frozen=True, slots=True)
class Response:
    """The status of a response, its Retry-After, and the first bytes of its body as text."""

    status: int
    retry_after: str | None
    text: str


class Sender:
    """Sends requests to allowed targets; the caller bounds their time."""

    def __init__(self, targets: AllowedTargets) -> None:
        self._targets = targets
        # Not the threads of the event loop, which a server needs for its own requests.
        self._resolvers = ThreadPoolExecutor(RESOLVERS, "laneway-resolve")

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send one request, and read the start of its response."""
        parts = urlsplit(url)
        reader, writer = await self._connect(parts)
        try:
            writer.write(_head(parts, headers, len(body)) + body)
            # A receiver may respond and close before it has read the body.
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            return await _read(reader)
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise RequestFailed(_text(error)) from error
        finally:
            # Not closed in an orderly way, for which the other side could keep us waiting.
            writer.transport.abort()

    async def _connect(
        self, parts: SplitResult
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the first address of the host that is allowed and answers."""
        host, is_https = str(parts.hostname), parts.scheme == "https"
        failure: OSError | None = None
        addresses = await self._addresses(parts)
        for address in addresses:
            try:
                async with asyncio.timeout(None if address == addresses[-1] else CONNECT_S):
                    # The address, not the name, which could be resolved to another one now.
                    return await asyncio.open_connection(
                        address,
                        parts.port or (443 if is_https else 80),
                        limit=HEAD_BYTES,
                        ssl=self._tls if is_https else None,
                        server_hostname=host if is_https else None,
                    )
            except OSError as error:
                failure = error
        raise RequestFailed(f"cannot connect to {host}: {_text(failure)}") from failure

    async def _addresses(self, parts: SplitResult) -> list[str]:
        """The addresses of the host that are allowed, at least one."""
        host, loop = str(parts.hostname), asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._resolvers, resolve, host, parts.port)
        except (OSError, UnicodeError) as error:
            raise RequestFailed(f"cannot resolve {host}: {_text(error)}") from error
        allowed = [each for each in found if self._targets.allows(host, each)]
        if not allowed:
            raise RequestFailed(f"{host} is not a public address: {_CURE}")
        if parts.scheme != "https":
            allowed = [each for each in allowed if self._targets.names(host, each)]
        if not allowed:
            raise RequestFailed(f"{host}: http is not encrypted: use https, or {_CURE}")
        return allowed


def resolve(host: str, port: int | None) -> list[str]:
    """The addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _head(parts: SplitResult, headers: Mapping[str, str], length: int) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"host: {parts.netloc}",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"content-length: {length}",
        "connection: close",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


async def _read(reader: asyncio.StreamReader) -> Response:
    for _ in range(MOST_INTERIM):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
            raise RequestFailed("the response is not HTTP/1.1")
        status = int(words[1])
        if 100 <= status < 200:
            continue
        named = (line.partition(":") for line in lines)
        fields = {name.strip().lower(): value.strip() for name, _, value in named}
        text = "" if 200 <= status < 300 else await _start_of_body(reader, fields)
        return Response(status, fields.get("retry-after"), text)
    raise RequestFailed(f"more than {MOST_INTERIM} interim responses")


async def _start_of_body(reader: asyncio.StreamReader, fields: Mapping[str, str]) -> str:
    """The first bytes of the body, as far as they come soon."""
    body = b""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(BODY_S):
            while len(body) < BODY_BYTES and (more := await reader.read(BODY_BYTES - len(body))):
                body += more
    if fields.get("transfer-encoding", "").lower() == "chunked":
        body = body.partition(b"\r\n")[2]
    return body.decode("utf-8", "replace")


def retry_after_s(text: str | None, now: float) -> float | None:
    """The seconds that a Retry-After asks for; it is a number or a date."""
    if text is None:
        return None
    try:
        wait = float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - now
    except (ValueError, OverflowError, TypeError):
        return None
    return min(max(wait, 0.0), LONGEST_AFTER_S)


def _text(error: BaseException | None) -> str:
    """The message of an error without addresses of memory and code."""
    if isinstance(error, ssl.SSLError):
        return str(getattr(error, "verify_message", "") or error.reason or "TLS failed")
    if isinstance(error, EOFError):
        return "the connection was closed before a response"
    if isinstance(error, asyncio.LimitOverrunError):
        return f"the head of the response is larger than {HEAD_BYTES} bytes"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
