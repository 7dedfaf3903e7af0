"""A connection that listens for Laneway's notifications."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import psycopg

END = "end of test"


class NotificationListener:
    """Receives notifications with LISTEN."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def __aenter__(self) -> Self:
        self._conn: psycopg.AsyncConnection[Any] = await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True
        )
        await self._conn.execute("listen laneway")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._conn.close()

    async def received(self) -> list[str]:
        """All notifications committed before this call, in order."""
        await self._conn.execute("select pg_notify('laneway', %s)", [END])
        received: list[str] = []
        async for notice in self._conn.notifies(timeout=60):
            if notice.payload == END:
                return received
            received.append(notice.payload)
        raise AssertionError("the end marker was not received")

    async def next(self) -> str:
        """The next notification."""
        async for notice in self._conn.notifies(timeout=60, stop_after=1):
            return notice.payload
        raise AssertionError("no notification was received")
