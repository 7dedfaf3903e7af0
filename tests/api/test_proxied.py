"""Connections and browsers behind a proxy."""

from __future__ import annotations

import pytest

from laneway.api.http.connections import Connections
from laneway.config.settings import Settings
from laneway.errors import ConfigError


class Held:
    """A connection with or without a request."""

    def __init__(self, *, is_waiting: bool) -> None:
        self.is_waiting = is_waiting
        self.is_dropped = False

    def drop(self) -> None:
        self.is_dropped = True


def test_idle_connection_of_any_address_makes_room_at_the_cap() -> None:
    places = Connections(Settings.load(max_connections=16))
    for _ in range(10):
        assert places.add("192.0.2.1", Held(is_waiting=False))
    idle = [Held(is_waiting=True) for _ in range(6)]
    for number, one in enumerate(idle):
        assert places.add(f"198.51.100.{number}", one)
    assert places.add("203.0.113.1", Held(is_waiting=False))
    assert sum(one.is_dropped for one in idle) == 1


@pytest.mark.parametrize("given", [{"trusted_proxies": "10.0.0.0/8"}, {"behind_tls_proxy": True}])
def test_proxy_may_hold_more_connections_than_one_client(given: dict[str, object]) -> None:
    places = Connections(Settings.load(max_connections_per_address=1, **given))
    for _ in range(3):
        assert places.add("10.1.2.3", Held(is_waiting=False))


def test_client_holds_no_more_connections_than_its_cap() -> None:
    places = Connections(Settings.load(max_connections_per_address=1))
    assert places.add("10.1.2.3", Held(is_waiting=False))
    assert not places.add("10.1.2.3", Held(is_waiting=False))


def test_proxy_that_is_neither_address_nor_network_is_refused() -> None:
    with pytest.raises(ConfigError, match="trusted_proxies"):
        Settings.load(trusted_proxies="proxy.example.org")
