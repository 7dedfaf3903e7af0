"""Many stream readers in one process, some of which never read.

python -m bench.api.stream_readers PORT takes a JSON list of {path, token, reads} as the first line
of its input. It prints a line when every stream is open, and what it received when the input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from typing import Any, cast

from laneway.engine.process.lifecycle import run_loop


class Reader(asyncio.Protocol):
    """One open stream."""

    def __init__(self, path: str, token: str, reads: bool) -> None:
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        ).encode()
        self._reads = reads
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_open = True
        self.events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            if not data.startswith(b"HTTP/1.1 200"):
                self.opened.set_exception(AssertionError(data[:500].decode()))
                return
            self.opened.set_result(None)
            if not self._reads:
                self._transport.pause_reading()
        self.events += data.count(b"\nevent:") + data.startswith(b"event:")

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if not self.opened.done():
            self.opened.set_exception(error or ConnectionError("hung up"))


async def _main(port: int) -> int:
    loop = asyncio.get_running_loop()
    wanted: list[dict[str, Any]] = json.loads(sys.stdin.readline())
    readers: list[Reader] = []
    for one in wanted:
        _, reader = await loop.create_connection(partial(Reader, **one), "127.0.0.1", port)
        readers.append(reader)
        await reader.opened
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    reading = [r for r, one in zip(readers, wanted, strict=True) if one["reads"]]
    received = {
        "events": sum(reader.events for reader in reading),
        "reading": sum(reader.is_open for reader in reading),
    }
    print(json.dumps(received), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_loop(_main(int(sys.argv[1]))))
