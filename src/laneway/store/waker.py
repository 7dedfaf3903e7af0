"""Coalesced wake-ups after commit, so that commits do not queue behind NOTIFY's lock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from laneway.errors import LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.store import notify
from laneway.store.database import Database

log = SafeLogger(__name__)

CLOSE_TIMEOUT_S = 1.0
# Number of wake-ups within an interval that counts as a flood.
_FLOOD = 10
_FLOOD_INTERVALS = 4


class Waker:
    """Wakes listening workers: at once or after `delay_ms` when quiet, else once per interval.

    In a flood less often: workers that found jobs poll again anyway. A wake-up that cannot be sent
    is dropped, because workers poll. Belongs to one event loop.
    """

    def __init__(self, database: Database, interval_ms: int = 5, *, delay_ms: int = 0) -> None:
        self._database = database
        self._interval = interval_ms / 1000
        self._delay = delay_ms / 1000
        self._types: set[str] = set()
        self._wakes = 0
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False

    def wake(self, job_types: Iterable[str]) -> None:
        """Schedules a wake-up for these job types and returns; it uses another connection."""
        self._types.update(job_types)
        self._wakes += 1
        if self._types and self._task is None:
            self._task = asyncio.create_task(self._send_pending(), name="laneway waker")

    @classmethod
    def of_peers(cls, database: Database) -> Waker:
        """Wakes other workers for jobs that a worker leaves to them, at most once per 50 ms."""
        return cls(database, 0, delay_ms=50)

    async def close(self, *, send: bool = True) -> None:
        """Sends pending wake-ups, if that is possible within a second; `send=False`: drops them."""
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=CLOSE_TIMEOUT_S if send else 0.0)
            for task in late:
                task.cancel()
                await asyncio.wait({task})

    async def _send_pending(self) -> None:
        try:
            while self._types:
                if self._delay:
                    await asyncio.sleep(self._delay)
                types, self._types = self._types, set()
                pause = self._interval * (_FLOOD_INTERVALS if self._wakes >= _FLOOD else 1)
                self._wakes = 0
                await self._send(notify.wake_message(types))
                # Wake-ups during this pause are sent together after it.
                await asyncio.sleep(pause)
        finally:
            self._task = None

    async def _send(self, message: str) -> None:
        try:
            await self._database.run(notify.wake(message))
            self._is_failing = False
        except LanewayError as error:
            # Not when the program is closing.
            if not self._is_failing and not self._database.is_closed:
                log.warning("cannot send wake-ups, jobs start at the next poll: %s", error)
            self._is_failing = True
