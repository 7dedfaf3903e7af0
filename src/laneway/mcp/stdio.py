"""Serves the assistant that started this process, over its stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import Any, Final, cast

from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError

from laneway.domain.payload import DEFAULT_LIMITS, PayloadLimits
from laneway.mcp.server import McpServer
from laneway.mcp.unreadable import unreadable

_STDIN: Final = 0


async def serve(server: McpServer, limits: PayloadLimits = DEFAULT_LIMITS) -> None:
    """Serve until stdin ends."""
    lines = _Lines(_STDIN, limits)
    async with stdio_server(stdin=cast(Any, lines)) as (reading, writing):
        lines.writing.set_result(writing)
        lowlevel = server.lowlevel
        await lowlevel.run(reading, writing, lowlevel.create_initialization_options())


class _Lines:
    """Reads lines in a daemon thread, so that Ctrl-C ends the process during a read.

    Responds through `writing` to messages that the MCP package cannot parse.
    """

    def __init__(self, descriptor: int, limits: PayloadLimits) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self.writing: asyncio.Future[Any] = self._loop.create_future()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        threading.Thread(target=self._read, args=[descriptor], daemon=True).start()

    def _read(self, descriptor: int) -> None:
        # A duplicate descriptor: the thread may still use it when Python closes sys.stdin.
        with os.fdopen(os.dup(descriptor), "rb") as lines:
            for line in lines:
                self._hand_over(line)
        self._hand_over(None)

    def _hand_over(self, line: bytes | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            invalid = await asyncio.to_thread(unreadable, line, self._limits)
            if invalid is None:
                yield line.decode("utf-8", "replace")
                continue
            error = ErrorData(**invalid["error"])
            refusal = JSONRPCError(jsonrpc="2.0", id=invalid["id"], error=error)
            await (await self.writing).send(SessionMessage(refusal))
