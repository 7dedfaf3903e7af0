"""Principals at their bound: their requests are tried apart, a few at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

# A refused request takes the others of its commit along, and each is stored by itself then.
ALONE_S: Final = 5.0
# Of all such principals, at one server: refusals leave the connections to others.
AT_ONCE: Final = 2
MOST: Final = 10_000


class FullPrincipals:
    """Who was refused a moment ago, because too much of it waits."""

    def __init__(self) -> None:
        self._until: dict[UUID, float] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def __contains__(self, principal: UUID) -> bool:
        return self._until.get(principal, 0.0) > time.monotonic()

    def note(self, principal: UUID) -> None:
        """Keeps it out of the commits of others for a while."""
        if len(self._until) >= MOST:
            self._until.clear()
        self._until[principal] = time.monotonic() + ALONE_S

    @asynccontextmanager
    async def turn(self, principal: UUID) -> AsyncIterator[None]:
        """Waits for its turn if it is one of them; others do not wait."""
        if principal not in self:
            yield
            return
        async with self._turns:
            yield
