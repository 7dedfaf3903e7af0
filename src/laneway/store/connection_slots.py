"""The slots of a connection pool."""

from __future__ import annotations

import asyncio
from typing import Literal

from laneway.errors import DatabaseUnavailable


class ConnectionSlots(asyncio.Semaphore):
    """Counts the callers that have or want a connection, and limits how long they wait."""

    callers = 0

    def __init__(self, size: int, longest_s: float | None) -> None:
        super().__init__(size)
        self._size = size
        self._longest_s = longest_s

    async def acquire(self) -> Literal[True]:
        self.callers += 1
        try:
            if self._longest_s is not None and self.locked():
                return await self._acquire_within(self._longest_s)
            return await super().acquire()
        except BaseException:
            self.callers -= 1
            raise

    async def _acquire_within(self, longest_s: float) -> Literal[True]:
        # Not asyncio.timeout: a request starts outside of a task.
        acquiring = asyncio.ensure_future(super().acquire())
        try:
            await asyncio.wait({acquiring}, timeout=longest_s)
        except BaseException:
            if not acquiring.cancel():
                super().release()
            raise
        if acquiring.cancel():
            raise DatabaseUnavailable(
                f"all {self._size} connections were in use for {longest_s:g} s"
            )
        return acquiring.result()

    def release(self) -> None:
        self.callers -= 1
        super().release()
