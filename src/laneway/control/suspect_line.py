"""The line in which secrets wait for their look-up where many were wrong before them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from laneway.errors import RateLimited

# Looked up at once; the pool has ten connections.
AT_ONCE: Final = 2
# As many as one address may hold connections, and one server: only calls that share a connection
# ever meet these bounds.
MOST_EACH: Final = 500
MOST: Final = 2_000

_REFUSAL: Final = "too many tokens or links of this address wait to be looked up"


class SuspectLine:
    """Takes turns between addresses, so that one that guesses delays itself and not others.

    It is bounded for each address and in all. Where all places are taken, the newest one of the
    address that has most of them gives way.
    """

    def __init__(
        self, at_once: int = AT_ONCE, most_each: int = MOST_EACH, most: int = MOST
    ) -> None:
        self._free = at_once
        self._most_each = most_each
        self._most = most
        # By address, in the order of their turns.
        self._lines: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @asynccontextmanager
    async def turn(self, address: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of this address; RateLimited: too many wait already."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(address)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, address: Hashable) -> None:
        if len(self._lines.get(address, ())) >= self._most_each:
            raise RateLimited(_REFUSAL, 1.0)
        if self._waiting >= self._most:
            self._make_room(address)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(address, deque()).append(mine)
        self._waiting += 1
        try:
            await mine
        except asyncio.CancelledError:
            if mine.cancelled():
                self._leave(address, mine)
            elif mine.exception() is None:
                # Its turn came at the same moment.
                self._pass_on()
            raise

    def _make_room(self, address: Hashable) -> None:
        longest = max(self._lines, key=lambda one: len(self._lines[one]))
        if len(self._lines[longest]) <= len(self._lines.get(address, ())) + 1:
            raise RateLimited(_REFUSAL, 1.0)
        last = self._lines[longest][-1]
        self._leave(longest, last)
        # One that is cancelled has not left the line yet.
        if not last.done():
            last.set_exception(RateLimited(_REFUSAL, 1.0))

    def _leave(self, address: Hashable, one: asyncio.Future[None]) -> None:
        line = self._lines.get(address, deque())
        if one not in line:
            return
        line.remove(one)
        self._waiting -= 1
        if not line:
            del self._lines[address]

    def _pass_on(self) -> None:
        """Give the turn to the next address, or keep it free."""
        while self._lines:
            address, line = self._lines.popitem(last=False)
            following = line.popleft()
            self._waiting -= 1
            if line:
                self._lines[address] = line
            # One that is cancelled has not left the line yet.
            if not following.done():
                following.set_result(None)
                return
        self._free += 1
