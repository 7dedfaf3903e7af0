"""Limits open connections, per address and in total, so that other clients are still served."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Final, Protocol

from laneway.config.settings import Settings
from laneway.control.throttle import network_of
from laneway.domain.address import is_loopback

# File descriptors reserved for the database, logs and files; connections get the rest.
_OWN_FILES: Final = 128


class CountedConnection(Protocol):
    """A connection that holds a slot."""

    @property
    def is_waiting(self) -> bool:
        """Whether no request is in progress on it."""

    def drop(self) -> None:
        """Close it immediately."""


def descriptors() -> int | None:
    """Raise the limit of open files as far as allowed and return it; None: unknown."""
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass
    return None if soft in (-1, resource.RLIM_INFINITY) else soft


class Connections:
    """The connections of one server by address; a new one may replace an idle one."""

    def __init__(self, settings: Settings) -> None:
        files = descriptors()
        most = settings.max_connections
        self._most = most if files is None else max(16, min(most, files - _OWN_FILES))
        self._most_each = settings.max_connections_per_address
        self._is_behind_proxy = settings.behind_tls_proxy
        self._proxies = [ip_network(one) for one in settings.trusted_proxies]
        self._held: dict[str | None, dict[CountedConnection, None]] = {}
        self.count = 0

    def add(self, address: str | None, connection: CountedConnection) -> bool:
        """Give it a slot, if necessary that of the oldest idle connection; False: none is free."""
        key = network_of(address)
        held = self._held.get(key, {})
        if self._is_bounded(address) and len(held) >= self._most_each and not self._make_room(held):
            return False
        if self.count >= self._most:
            by_size = sorted(self._held.values(), key=len, reverse=True)
            if not any(self._make_room(held) for held in by_size):
                return False
        self._held.setdefault(key, {})[connection] = None
        self.count += 1
        return True

    def _is_bounded(self, address: str | None) -> bool:
        """Whether the address belongs to one client, not to a proxy or to this machine."""
        if self._is_behind_proxy or (address and is_loopback(address)):
            return False
        try:
            known = None if address is None else ip_address(address)
        except ValueError:
            return True
        return known is None or not any(known in network for network in self._proxies)

    def remove(self, address: str | None, connection: CountedConnection) -> None:
        key = network_of(address)
        held = self._held.get(key)
        if held is None or connection not in held:
            return
        del held[connection]
        self.count -= 1
        if not held:
            del self._held[key]

    def _make_room(self, held: dict[CountedConnection, None]) -> bool:
        for connection in held:
            if connection.is_waiting:
                connection.drop()
                return True
        return False
