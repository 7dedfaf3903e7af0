"""A client of an application in process, and the job factory of its database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from laneway.http import AsyncClient, Client
from tests.api.conftest import People, app, audit_entries, database, people
from tests.http.scripted_server import ClientRunner

__all__ = [
    "app",
    "audit_entries",
    "client",
    "database",
    "no_pauses",
    "people",
    "runner",
]


@pytest.fixture
async def client(app: FastAPI, people: People) -> AsyncIterator[AsyncClient]:
    """A client with every permission."""
    admin = people.new("admin", "platform_admin")
    transport = httpx2.ASGITransport(app)
    async with AsyncClient("http://test", admin.token, transport=transport) as client:
        yield client


@pytest.fixture(params=[Client, AsyncClient])
def runner(request: pytest.FixtureRequest) -> ClientRunner:
    return ClientRunner(request.param)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record pauses of clients instead of sleeping."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("laneway.http.runners.time.sleep", waited.append)
    monkeypatch.setattr("laneway.http.runners.asyncio.sleep", sleep)
    return waited
