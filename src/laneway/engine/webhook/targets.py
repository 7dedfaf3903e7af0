"""Which hosts and addresses webhooks may be sent to: public ones, and those an operator allows.

The address of the connection counts, not the name: a name can be resolved to another address later.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

# Services of clouds for their machines, which ipaddress takes for public ones.
_OF_CLOUDS: Final = (ip_network("192.0.0.0/24"), ip_network("168.63.129.16/32"))
# Leads to the IPv4 address in the last four bytes; ipaddress takes it for reserved.
_NAT64: Final = ip_network("64:ff9b::/96")


class AllowedTargets:
    """Hosts and networks that are not public, and to which plain http is allowed."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._hosts: set[str] = set()
        self._networks: list[IPv4Network | IPv6Network] = []
        for one in allowed:
            try:
                self._networks.append(ip_network(one))
            except ValueError:
                self._hosts.add(one.lower())

    def names(self, host: str, address: str) -> bool:
        """Whether an operator allows this host or address."""
        found = _parse(address)
        return host.lower() in self._hosts or any(found in each for each in self._networks)

    def allows(self, host: str, address: str) -> bool:
        """Whether webhooks may be sent to this address of the host."""
        return is_public(address) or self.names(host, address)


def is_public(address: str) -> bool:
    """Whether an address is on the internet: not loopback, private, link-local or multicast."""
    found = _parse(address)
    if isinstance(found, IPv6Address):
        inner = _inner(found)
        if inner is not None and not is_public(str(inner)):
            return False
        if found in _NAT64:
            return True
        if found.is_site_local:
            return False
    if any(found in each for each in _OF_CLOUDS):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def _parse(address: str) -> IPv4Address | IPv6Address:
    """The address without its zone; one that wraps an IPv4 address is that."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which a gateway forwards packets for this one."""
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    if address.teredo is not None:
        return address.teredo[1]
    return address.sixtofour
