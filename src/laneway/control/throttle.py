"""Rate limits: requests of one caller, and wrong secrets.

Counted in this process, in bounded memory: each replica allows a caller as much.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeVar

from laneway.config.settings import Settings
from laneway.control.lookup_queue import LookupQueue
from laneway.errors import RateLimited, Unauthenticated

# Callers or addresses, each with a number: less than a megabyte.
MAX_KEPT: Final = 10_000
# All addresses together may fail this many times as often as one.
_TOGETHER: Final = 20

_EXACT_S: Final = 1e-6

T = TypeVar("T")


class Buckets:
    """A token bucket per key with `burst` tokens, refilled by `per_second`; full ones are free."""

    def __init__(self, per_second: float, burst: float, most: int = MAX_KEPT) -> None:
        self._gap = 1 / per_second
        self._depth = burst * self._gap
        self._most = most
        # The moment at which the bucket of a key is full again.
        self._full_at: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, key: Hashable, now: float | None = None) -> float:
        """Seconds until the bucket has a token; 0 if it has one."""
        now = time.monotonic() if now is None else now
        return self._wait(self._full_at.get(key, now) + self._gap, now)

    def take(self, key: Hashable, now: float | None = None) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        now = time.monotonic() if now is None else now
        full_at = max(self._full_at.get(key, now), now) + self._gap
        wait_s = self._wait(full_at, now)
        if wait_s:
            return wait_s
        if len(self._full_at) >= self._most and key not in self._full_at:
            self._make_room(now)
        self._full_at[key] = full_at
        return 0.0

    def _wait(self, full_at: float, now: float) -> float:
        """Seconds until `full_at` is allowed; tolerates the error of float sums."""
        wait_s = full_at - self._depth - now
        return wait_s if wait_s > _EXACT_S else 0.0

    def _make_room(self, now: float) -> None:
        """Drop full buckets, which loses nothing; if all are in use, the fuller half."""
        used = {key: at for key, at in self._full_at.items() if at > now}
        if len(used) >= self._most:
            by_use = sorted(used, key=used.__getitem__)
            used = {key: used[key] for key in by_use[len(by_use) // 2 :]}
        self._full_at = used


class Throttle:
    """The rate limits of one process: requests per caller, wrong secrets per address."""

    def __init__(self, settings: Settings) -> None:
        rate, tries = settings.requests_per_second, settings.failed_logins_per_minute
        self._requests = Buckets(rate, 2 * rate) if rate else None
        self._failures = Buckets(tries / 60, tries) if tries else None
        self._all_failures = Buckets(tries / 60 * _TOGETHER, tries * _TOGETHER) if tries else None
        self._lookups = LookupQueue()

    def count(self, caller: Hashable) -> None:
        """Count one request of an authenticated caller."""
        if self._requests is None:
            return
        wait = self._requests.take(caller)
        if wait:
            raise RateLimited("too many requests with this token or session", wait)

    async def check(
        self,
        address: str | None,
        look_up: Callable[[], Awaitable[T]],
        *,
        is_known: bool,
        peer: Hashable | None = None,
        is_gone: Callable[[], bool] | None = None,
    ) -> T:
        """Look up a secret; after many wrong ones a valid secret waits, but is not refused.

        Then two unknown secrets are looked up at once, and networks take turns. The queue has room
        for all connections of a server. If it is full, the connection (`peer`) with the most calls
        loses a place, then the network with the most; callers with few calls keep their places.
        """
        wait = 0.0 if is_known else self._wait(address)
        try:
            if not wait:
                return await look_up()
            async with self._lookups.turn(network_of(address), peer, is_gone):
                return await look_up()
        except Unauthenticated:
            self.count_failure(address)
            if wait:
                message = "too many wrong tokens or links came from this address"
                raise RateLimited(message, wait) from None
            raise

    def _wait(self, address: str | None) -> float:
        if self._failures is None or self._all_failures is None:
            return 0.0
        return max(self._failures.wait(network_of(address)), self._all_failures.wait(None))

    def count_failure(self, address: str | None) -> None:
        """Count a wrong secret."""
        if self._failures is not None and self._all_failures is not None:
            self._failures.take(network_of(address))
            self._all_failures.take(None)


def network_of(address: str | None) -> str | None:
    """The unit that counts as one address: for IPv6 a /64 network, which one caller may own."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
