"""Requests get a response while the network to the database is silent, and work afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from laneway.app.laneway import REQUEST_STATEMENT_S, REQUEST_WAIT_S, make_api
from laneway.config.settings import Settings
from laneway.testing.proxy import Proxy
from tests.api.conftest import Ask, People
from tests.support.server_address import address, through

LONGEST_S = 15.0


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    async with Proxy(*address(dsn)) as opened:
        yield opened


@pytest.fixture
async def app(dsn: str, proxy: Proxy) -> AsyncIterator[FastAPI]:
    far = through(proxy, dsn)
    app = make_api(far, Settings.load(database_url=far, silence_timeout=0.5), None)
    yield app
    await app.state.close()
    await app.state.database.close()


async def test_requests_on_dead_connections_are_answered_and_the_next_are_served(
    ask: Ask, people: People, proxy: Proxy
) -> None:
    ann = people.new("ann", "operator")
    first = await asyncio.gather(*(ask(ann, "GET", "/jobs") for _ in range(3)))
    assert [one.status_code for one in first] == [200] * 3
    assert proxy.swallow() > 0
    response = await ask(ann, "GET", "/jobs")
    assert response.status_code == 503
    assert response.json()["code"] == "database_unavailable"
    again = await asyncio.gather(*(ask(ann, "GET", "/jobs") for _ in range(3)))
    assert [one.status_code for one in again] == [200] * 3


def test_request_waits_less_than_fifteen_seconds_for_its_database(app: FastAPI) -> None:
    settings = app.state.database.settings
    assert REQUEST_WAIT_S + settings.statement_timeout < LONGEST_S
    assert settings.statement_timeout == REQUEST_STATEMENT_S
    defaults = Settings.load(database_url="postgresql://nowhere")
    # Detecting the silence takes a query and another connection.
    assert REQUEST_WAIT_S + 2 * defaults.silence_timeout < LONGEST_S
    assert REQUEST_WAIT_S + defaults.connect_timeout < LONGEST_S
