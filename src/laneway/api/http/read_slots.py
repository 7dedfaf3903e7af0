"""Expensive reads: each principal has a few at once and a line of its own, so others do not wait.

The server has ten connections to its database; a principal that asks for many lists at once would
take all of them.
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

IN_LINE: Final = 50


class _ReadQueue:
    def __init__(self, at_once: int) -> None:
        self.slots = Semaphore(at_once)
        self.users = 0


class ReadSlots:
    """The lines of one server, by principal; one that nobody is in is forgotten."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lines: dict[UUID, _ReadQueue] = {}

    @asynccontextmanager
    async def hold(self, principal: UUID) -> AsyncIterator[None]:
        """Wait in line, then hold a slot; RateLimited where the line is full."""
        line = self._lines.setdefault(principal, _ReadQueue(self._at_once))
        if line.users >= self._at_once + IN_LINE:
            raise RateLimited("too many lists, counts and searches of yours are under way", 1.0)
        line.users += 1
        try:
            async with line.slots:
                yield
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[principal]


async def expensive(
    request: Request, who: Annotated[Caller, Depends(caller)]
) -> AsyncIterator[None]:
    """A dependency of routes that read much: they run in the line of their caller."""
    slots: ReadSlots = request.app.state.read_slots
    async with slots.hold(who.access.principal_id):
        yield


# For `dependencies=` of a route.
EXPENSIVE: Final = (Depends(expensive),)
