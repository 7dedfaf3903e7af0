"""Wake-ups sent to other workers about jobs that they can claim."""

from __future__ import annotations

import asyncio
import contextlib

from laneway.errors import LanewayError
from laneway.store.database import Database
from laneway.store.notify import wake, wake_message

# Wake-ups within this time are sent as one.
COALESCE_S = 0.05


class PeerWakeups:
    """Wakes peers at most once per 50 ms; their polls find the jobs of a lost wake-up."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._types: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def wake(self, job_types: set[str]) -> None:
        self._types |= job_types
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        await asyncio.sleep(COALESCE_S)
        types, self._types = self._types, set()
        with contextlib.suppress(LanewayError):
            await self._database.run(wake(wake_message(types)))

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
