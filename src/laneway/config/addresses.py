"""Settings that list addresses, networks and hosts."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Final

_HOST: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\Z", re.IGNORECASE)


def read_addresses(value: object) -> tuple[str, ...]:
    """Addresses and networks, from a list or from one text with commas."""
    return tuple(_network(one) for one in _texts(value))


def read_targets(value: object) -> tuple[str, ...]:
    """The same with host names."""
    return tuple(_network(one) if _is_address(one) else _host(one) for one in _texts(value))


def _texts(value: object) -> list[str]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)):
        raise ValueError("must be a list of addresses")
    return [text for one in given if (text := str(one).strip())]


def _network(text: str) -> str:
    return str(ip_network(text) if "/" in text else ip_address(text))


def _is_address(text: str) -> bool:
    return "/" in text or ":" in text or text.replace(".", "").isdigit()


def _host(text: str) -> str:
    if not _HOST.match(text):
        raise ValueError(f"{text!r} is neither a host name nor an address or network")
    return text.lower()
