"""The queue in which secrets wait for their lookup after many wrong ones."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final

from laneway.errors import RateLimited

# Concurrent lookups; the pool has ten connections.
AT_ONCE: Final = 2
# Four for each connection that one server may have; that is also the fair share of each, because a
# worker makes two or three calls at once. So the queue is full only if a caller has more.
MAX_WAITING: Final = 8_000
_FAIR_SHARE: Final = 2_000
# Bounds the cost of a refusal, independent of the length of the queue.
_EXAMINED: Final = 32

_REFUSAL: Final = "too many tokens or links of this address are waiting to be checked"


class _Waiter:
    """A waiting lookup, with its address and connection."""

    __slots__ = ("address", "is_gone", "peer", "turn")

    def __init__(
        self, address: Hashable, peer: Hashable | None, is_gone: Callable[[], bool] | None
    ) -> None:
        self.address = address
        self.peer = self if peer is None else peer
        self.is_gone = is_gone
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def drop(self) -> None:
        # A cancelled waiter has not left the queue yet.
        if not self.turn.done():
            self.turn.set_exception(RateLimited(_REFUSAL, 1.0))

    @property
    def has_left(self) -> bool:
        return self.turn.done() or (self.is_gone is not None and self.is_gone())


class _Holders:
    """Waiters by holder (an address or a connection), and the holder with the most places."""

    def __init__(self) -> None:
        # Ordered by turn.
        self._held: OrderedDict[Hashable, OrderedDict[_Waiter, None]] = OrderedDict()
        self._by_count: dict[int, dict[Hashable, None]] = {}
        self._most = 0

    def count(self, holder: Hashable) -> int:
        return len(self._held.get(holder, ()))

    def add(self, holder: Hashable, waiter: _Waiter) -> None:
        held = self._held.setdefault(holder, OrderedDict())
        held[waiter] = None
        self._moved(holder, len(held) - 1, len(held))

    def remove(self, holder: Hashable, waiter: _Waiter) -> None:
        held = self._held[holder]
        del held[waiter]
        self._moved(holder, len(held) + 1, len(held))
        if not held:
            del self._held[holder]

    def _moved(self, holder: Hashable, before: int, after: int) -> None:
        if before:
            del self._by_count[before][holder]
            if not self._by_count[before]:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, {})[holder] = None
        # Counts change by one, and so does the highest.
        if after > self._most or self._most not in self._by_count:
            self._most = after

    def newest_of_largest(self, above: int) -> _Waiter | None:
        """The newest waiter of the largest holder; None if none has more than `above` places."""
        if self._most <= above:
            return None
        largest = next(iter(self._by_count[self._most]))
        return next(reversed(self._held[largest]))

    def next_in_turn(self) -> _Waiter:
        """The oldest waiter of the next holder; the holder moves to the end."""
        holder = next(iter(self._held))
        self._held.move_to_end(holder)
        return next(iter(self._held[holder]))


class LookupQueue:
    """Alternates between addresses, so that one that guesses delays only itself.

    The queue is bounded. If it is full, a waiter that has disconnected is dropped; else the newest
    waiter of the connection with the most places; else that of the address with the most. Holders
    with no more than their fair share keep their places: then the new waiter is refused.
    """

    def __init__(self, at_once: int = AT_ONCE, most: int = MAX_WAITING) -> None:
        self._free = at_once
        self._most = most
        self._fair = max(1, most // _FAIR_SHARE)
        # The most recently examined are at the end.
        self._waiting: OrderedDict[_Waiter, None] = OrderedDict()
        self._addresses = _Holders()
        self._peers = _Holders()

    def __len__(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def turn(
        self,
        address: Hashable,
        peer: Hashable | None = None,
        is_gone: Callable[[], bool] | None = None,
    ) -> AsyncIterator[None]:
        """Wait for a turn of this address; RateLimited if too many wait.

        `peer` is the same for calls that share a connection; None: not shared.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(_Waiter(address, peer, is_gone))
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, mine: _Waiter) -> None:
        if len(self._waiting) >= self._most:
            last = self._find_gone() or self._find_largest(mine)
            if last is None:
                raise RateLimited(_REFUSAL, 1.0)
            self._leave(last)
            last.drop()
        self._waiting[mine] = None
        self._addresses.add(mine.address, mine)
        self._peers.add(mine.peer, mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine.turn.cancelled():
                self._leave(mine)
            elif mine.turn.exception() is None:
                # Its turn came at the same moment: pass it on.
                self._pass_on()
            raise

    def _find_gone(self) -> _Waiter | None:
        for _ in range(min(_EXAMINED, len(self._waiting))):
            waiter = next(iter(self._waiting))
            if waiter.has_left:
                return waiter
            self._waiting.move_to_end(waiter)
        return None

    def _find_largest(self, mine: _Waiter) -> _Waiter | None:
        above = max(self._fair, self._peers.count(mine.peer))
        found = self._peers.newest_of_largest(above)
        if found is None:
            above = max(self._fair, self._addresses.count(mine.address) + 1)
            found = self._addresses.newest_of_largest(above)
        return found

    def _leave(self, waiter: _Waiter) -> None:
        if waiter not in self._waiting:
            return
        del self._waiting[waiter]
        self._addresses.remove(waiter.address, waiter)
        self._peers.remove(waiter.peer, waiter)

    def _pass_on(self) -> None:
        """Pass the turn to the next address, or keep it free."""
        while self._waiting:
            following = self._addresses.next_in_turn()
            self._leave(following)
            if following.has_left:
                following.drop()
                continue
            following.turn.set_result(None)
            return
        self._free += 1
