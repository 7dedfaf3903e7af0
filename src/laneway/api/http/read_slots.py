"""Limits concurrent expensive reads per principal, with one queue for each.

The server has ten database connections; one principal requesting many lists would occupy them all.
"""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final
from uuid import UUID

from fastapi import Depends, Request

from laneway.api.http.auth import Caller, caller
from laneway.errors import RateLimited

MAX_QUEUED: Final = 50


class _ReadQueue:
    def __init__(self, concurrency: int) -> None:
        self.slots = Semaphore(concurrency)
        self.users = 0


class ReadSlots:
    """The read queues of one server, by principal; empty ones are removed."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._queues: dict[UUID, _ReadQueue] = {}

    @asynccontextmanager
    async def hold(self, principal: UUID) -> AsyncIterator[None]:
        """Wait in the queue, then hold a slot; RateLimited if the queue is full."""
        queue = self._queues.setdefault(principal, _ReadQueue(self._concurrency))
        if queue.users >= self._concurrency + MAX_QUEUED:
            raise RateLimited("too many lists, counts and searches of yours are in progress", 1.0)
        queue.users += 1
        try:
            async with queue.slots:
                yield
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[principal]


async def expensive(
    request: Request, who: Annotated[Caller, Depends(caller)]
) -> AsyncIterator[None]:
    """A dependency of routes that read much: they wait in their caller's queue."""
    slots: ReadSlots = request.app.state.read_slots
    async with slots.hold(who.access.principal_id):
        yield


# For `dependencies=` of a route.
EXPENSIVE: Final = (Depends(expensive),)
