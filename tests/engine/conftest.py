"""`workshop` makes an application on a fresh database; `shop` is one with default settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from tests.engine.workshop import Workshop


@pytest.fixture
async def workshop(dsn: str) -> AsyncIterator[Callable[..., Workshop]]:
    async with AsyncExitStack() as stack:
        made: list[Workshop] = []

        def make(**settings: object) -> Workshop:
            made.append(Workshop(dsn, **settings))
            stack.push_async_exit(made[-1].__aexit__)
            return made[-1]

        yield make


@pytest.fixture
def shop(workshop: Callable[..., Workshop]) -> Workshop:
    return workshop()


@pytest.fixture(params=[True, False], ids=["listening", "polling"])
def either_shop(workshop: Callable[..., Workshop], request: pytest.FixtureRequest) -> Workshop:
    """With notifications and without: what holds with the one holds with the other."""
    shop = workshop(listen=request.param)
    shop.lane("default", poll_interval_ms=100)
    return shop
