"""Streams in the process of a client or worker are notified of its changes without LISTEN."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from laneway.client import Client
from laneway.control import jobs
from laneway.store import leases, local_notify
from tests.support.store_client import StoreClient, whole

Change = Callable[[Client, StoreClient], Awaitable[object]]


@pytest.fixture
def notifications() -> Iterator[list[str]]:
    heard: list[str] = []
    who = object()
    local_notify.subscribe(who, lambda: heard.append("notified"))
    yield heard
    local_notify.unsubscribe(who)


async def _submit(client: Client, db: StoreClient) -> object:
    return await client.submit("t")


async def _submit_many(client: Client, db: StoreClient) -> object:
    return await client.submit_many([("t", {}), ("t", {})])


async def _cancel(client: Client, db: StoreClient) -> object:
    return await client.cancel(db.id_of(db.submit()))


async def _send_event(client: Client, db: StoreClient) -> object:
    return await client.send_event("go")


async def _reprioritize(client: Client, db: StoreClient) -> object:
    return await jobs.reprioritize(client.database, db.id_of(db.submit()), 5, by="ann")


async def _claim(client: Client, db: StoreClient, *, origins: bool = False) -> object:
    db.submit()
    claim = leases.claim(db.worker, "default", db.version(), 1, whole("t"), [1], origins=origins)
    return await client.database.run(claim)


async def _claim_with_origins(client: Client, db: StoreClient) -> object:
    return await _claim(client, db, origins=True)


@pytest.mark.parametrize(
    "change",
    [_submit, _submit_many, _cancel, _send_event, _reprioritize, _claim, _claim_with_origins],
)
async def test_every_change_notifies_streams_and_a_read_does_not(
    client: Client, db: StoreClient, notifications: list[str], change: Change
) -> None:
    await change(client, db)
    assert notifications == ["notified"]
    await client.get(db.id_of(db.submit()))
    assert notifications == ["notified"]
