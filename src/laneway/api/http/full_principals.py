"""Principals with a full quota: their submits are committed separately, a few at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

# A refused submit rolls back its whole group commit, so keep such principals out of it this long.
ALONE_S: Final = 5.0
# Submits of all such principals on one server, so that they leave connections to others.
AT_ONCE: Final = 2
MAX_PRINCIPALS: Final = 10_000


class FullPrincipals:
    """The principals that were refused recently because their quota was full."""

    def __init__(self) -> None:
        self._until: dict[UUID, float] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def __contains__(self, principal: UUID) -> bool:
        return self._until.get(principal, 0.0) > time.monotonic()

    def note(self, principal: UUID) -> None:
        """Keep it out of group commits for a while."""
        if len(self._until) >= MAX_PRINCIPALS:
            self._until.clear()
        self._until[principal] = time.monotonic() + ALONE_S

    @asynccontextmanager
    async def turn(self, principal: UUID) -> AsyncIterator[None]:
        """Wait for a turn if the principal is one of them; others do not wait."""
        if principal not in self:
            yield
            return
        async with self._turns:
            yield
