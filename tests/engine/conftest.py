"""`make_harness` makes an application on a fresh database; `harness` has default settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from tests.support.worker_harness import WorkerHarness


@pytest.fixture
async def make_harness(dsn: str) -> AsyncIterator[Callable[..., WorkerHarness]]:
    async with AsyncExitStack() as stack:
        made: list[WorkerHarness] = []

        def make(**settings: object) -> WorkerHarness:
            made.append(WorkerHarness(dsn, **settings))
            stack.push_async_exit(made[-1].__aexit__)
            return made[-1]

        yield make


@pytest.fixture
def harness(make_harness: Callable[..., WorkerHarness]) -> WorkerHarness:
    return make_harness()


@pytest.fixture(params=[True, False], ids=["listening", "polling"])
def either_harness(
    make_harness: Callable[..., WorkerHarness], request: pytest.FixtureRequest
) -> WorkerHarness:
    """A harness with notifications, and one without: the same laws hold."""
    harness = make_harness(listen=request.param)
    harness.lane("default", poll_interval_ms=100)
    return harness
