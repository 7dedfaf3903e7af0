"""How much is too much: requests of one caller, and secrets that nobody has.

Kept in this process and bounded: with several replicas a caller has as much at each of them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeVar

from laneway.config.settings import Settings
from laneway.control.suspect_line import SuspectLine
from laneway.errors import RateLimited, Unauthenticated

# Of callers or addresses, each a number: less than a megabyte.
MOST_KEPT: Final = 10_000
# Many addresses together may fail so many times as often as one of them.
_TOGETHER: Final = 20

_EXACT_S: Final = 1e-6

T = TypeVar("T")


class Buckets:
    """A bucket per key that holds `burst` and fills by `per_second`; unused, it costs no memory."""

    def __init__(self, per_second: float, burst: float, most: int = MOST_KEPT) -> None:
        self._gap = 1 / per_second
        self._depth = burst * self._gap
        self._most = most
        # By key, the moment at which its bucket is full again.
        self._full_at: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, key: Hashable, now: float | None = None) -> float:
        """Seconds until there is something in the bucket; 0: there is."""
        now = time.monotonic() if now is None else now
        return self._wait(self._full_at.get(key, now) + self._gap, now)

    def take(self, key: Hashable, now: float | None = None) -> float:
        """Takes one out, if there is one; else answers the seconds until there is."""
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
        """Seconds until the bucket may be full at that moment; sums of floats are not exact."""
        wait_s = full_at - self._depth - now
        return wait_s if wait_s > _EXACT_S else 0.0

    def _make_room(self, now: float) -> None:
        """Forgets full buckets, which loses nothing; if all are in use, the fuller half."""
        used = {key: at for key, at in self._full_at.items() if at > now}
        if len(used) >= self._most:
            by_use = sorted(used, key=used.__getitem__)
            used = {key: used[key] for key in by_use[len(by_use) // 2 :]}
        self._full_at = used


class Throttle:
    """Of one process: what each caller may still ask, and each address may still get wrong."""

    def __init__(self, settings: Settings) -> None:
        rate, tries = settings.requests_per_second, settings.failed_logins_per_minute
        self._requests = Buckets(rate, 2 * rate) if rate else None
        self._failures = Buckets(tries / 60, tries) if tries else None
        self._all_failures = Buckets(tries / 60 * _TOGETHER, tries * _TOGETHER) if tries else None
        self._suspects = SuspectLine()

    def count(self, who: Hashable) -> None:
        """One request of a caller who is known."""
        if self._requests is None:
            return
        wait = self._requests.take(who)
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
        """Look up a secret; a valid one waits where many were wrong before, and is not refused.

        Then two that are not known yet are looked up at once, and networks take turns. The line is
        as long as a server may hold connections. Where it is full, the connection (`peer`) with
        most calls gives way first, then the network with most; a few calls each keep their places.
        """
        wait = 0.0 if is_known else self._wait(address)
        try:
            if not wait:
                return await look_up()
            async with self._suspects.turn(network_of(address), peer, is_gone):
                return await look_up()
        except Unauthenticated:
            self.fail(address)
            if wait:
                message = "too many wrong tokens or links came from this address"
                raise RateLimited(message, wait) from None
            raise

    def _wait(self, address: str | None) -> float:
        if self._failures is None or self._all_failures is None:
            return 0.0
        return max(self._failures.wait(network_of(address)), self._all_failures.wait(None))

    def fail(self, address: str | None) -> None:
        """Counts a secret that nobody has."""
        if self._failures is not None and self._all_failures is not None:
            self._failures.take(network_of(address))
            self._all_failures.take(None)


def network_of(address: str | None) -> str | None:
    """What counts as one address: of IPv6, where anybody has a whole network, its first half."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
