"""Clients that send a request, wait for the response and send the next, one connection each.

python -m bench.api.http_load PORT CLIENTS SECONDS PAUSE reads the request from standard input and
prints the rate and the latencies. Plain sockets: the clients must cost less than the server.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import cast

from bench.workers import ROOT
from laneway.engine.process.lifecycle import run_loop

WARM_UP_S = 1.0


@dataclass(slots=True)
class _Measurement:
    until: float
    counts_from: float
    pause: float
    latencies: list[float] = field(default_factory=list)


class _Client(asyncio.Protocol):
    def __init__(self, request: bytes, measurement: _Measurement) -> None:
        self._request = request
        self._measurement = measurement
        self._buffer = b""
        self._sent = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._sent = time.monotonic()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, gap, body = self._buffer.partition(b"\r\n\r\n")
        if not gap:
            return
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            self._end(AssertionError(self._buffer[:500].decode()))
            return
        self._buffer = b""
        now = time.monotonic()
        if now >= self._measurement.counts_from:
            self._measurement.latencies.append(now - self._sent)
        if now >= self._measurement.until:
            self._end(None)
        elif self._measurement.pause:
            asyncio.get_running_loop().call_later(self._measurement.pause, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or ConnectionError("the server closed the connection"))

    def _end(self, error: Exception | None) -> None:
        if not self.ended.done():
            if error is None:
                self.ended.set_result(None)
            else:
                self.ended.set_exception(error)
        self._transport.close()


async def _main(port: int, clients: int, seconds: float, pause: float, request: bytes) -> int:
    now = time.monotonic()
    measurement = _Measurement(now + WARM_UP_S + seconds, now + WARM_UP_S, pause)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Client(request, measurement), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.ended for _, client in made))
    ordered = sorted(measurement.latencies)
    result = {"rate": len(ordered) / seconds}
    for name, part in (("p50", 0.5), ("p99", 0.99)):
        result[name] = 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]
    json.dump(result, sys.stdout)
    return 0


def post(path: str, body: bytes, token: str | None = None) -> bytes:
    """The bytes of a request."""
    header = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str) -> bytes:
    """The bytes of a request without credentials."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


@dataclass(frozen=True, slots=True)
class Latencies:
    """Requests per second, and milliseconds until a response."""

    rate: float
    p50: float
    p99: float


def send_requests(
    port: int, request: bytes, *, clients: int, seconds: float, pause: float = 0.0
) -> Latencies:
    """Send requests from a separate process; each client waits `pause` after a response."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.api.http_load", *map(str, (port, clients, seconds, pause))],
        cwd=ROOT,
        input=request,
        stdout=subprocess.PIPE,
        check=True,
        timeout=seconds + 60,
    )
    return Latencies(**json.loads(done.stdout))


if __name__ == "__main__":
    port, clients = map(int, sys.argv[1:3])
    seconds, pause = map(float, sys.argv[3:])
    sys.exit(run_loop(_main(port, clients, seconds, pause, sys.stdin.buffer.read())))
