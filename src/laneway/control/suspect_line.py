"""The line in which secrets wait for their look-up where many were wrong before them."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final

from laneway.errors import RateLimited

# Looked up at once; the pool has ten connections.
AT_ONCE: Final = 2
# As many as one server may hold connections: only calls that share one ever meet this bound.
MOST: Final = 2_000

_REFUSAL: Final = "too many tokens or links of this address wait to be looked up"


class _Waiter:
    """One that waits: by which connection it came, and whether that has ended."""

    __slots__ = ("is_gone", "peer", "turn")

    def __init__(self, peer: Hashable | None, is_gone: Callable[[], bool] | None) -> None:
        self.peer = self if peer is None else peer
        self.is_gone = is_gone
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def drop(self) -> None:
        # One that is cancelled has not left the line yet.
        if not self.turn.done():
            self.turn.set_exception(RateLimited(_REFUSAL, 1.0))

    @property
    def has_left(self) -> bool:
        return self.turn.done() or (self.is_gone is not None and self.is_gone())


class SuspectLine:
    """Takes turns between addresses, so that one that guesses delays itself and not others.

    It is bounded in all. Where all places are taken, those give way who have hung up; then the
    newest one of the connection that has most places, if it has several; then the newest one of
    the address that has most.
    """

    def __init__(self, at_once: int = AT_ONCE, most: int = MOST) -> None:
        self._free = at_once
        self._most = most
        # By address, in the order of their turns.
        self._lines: OrderedDict[Hashable, deque[_Waiter]] = OrderedDict()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @asynccontextmanager
    async def turn(
        self,
        address: Hashable,
        peer: Hashable | None = None,
        is_gone: Callable[[], bool] | None = None,
    ) -> AsyncIterator[None]:
        """Wait for a turn of this address; RateLimited: too many wait already.

        `peer` is the same for calls that share a connection; None: this one shares none.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(address, _Waiter(peer, is_gone))
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, address: Hashable, mine: _Waiter) -> None:
        if self._waiting >= self._most:
            self._drop_gone()
        if self._waiting >= self._most:
            self._make_room(address, mine.peer)
        self._lines.setdefault(address, deque()).append(mine)
        self._waiting += 1
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine.turn.cancelled():
                self._leave(address, mine)
            elif mine.turn.exception() is None:
                # Its turn came at the same moment.
                self._pass_on()
            raise

    def _drop_gone(self) -> None:
        gone = [
            (address, one) for address, line in self._lines.items() for one in line if one.has_left
        ]
        for address, one in gone:
            self._leave(address, one)
            one.drop()

    def _make_room(self, address: Hashable, peer: Hashable) -> None:
        places = Counter(one.peer for line in self._lines.values() for one in line)
        flooding, most = places.most_common(1)[0]
        if most > 1 and most > places[peer]:
            longest, last = next(
                (where, one)
                for where, line in self._lines.items()
                for one in reversed(line)
                if one.peer == flooding
            )
        else:
            longest = max(self._lines, key=lambda one: len(self._lines[one]))
            if len(self._lines[longest]) <= len(self._lines.get(address, ())) + 1:
                raise RateLimited(_REFUSAL, 1.0)
            last = self._lines[longest][-1]
        self._leave(longest, last)
        last.drop()

    def _leave(self, address: Hashable, one: _Waiter) -> None:
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
            if following.has_left:
                following.drop()
                continue
            following.turn.set_result(None)
            return
        self._free += 1
