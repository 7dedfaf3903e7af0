"""The listening connection: each message once, in order, also while it is being checked."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable
from laneway.store.notify import Listener
from tests.support.worker_harness import wait_until


async def listening(listener: Listener) -> asyncio.Task[None]:
    task = asyncio.create_task(listener.listen(lambda: None))
    await wait_until(lambda: listener.is_listening)
    return task


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


async def test_messages_during_pings_arrive_once_and_in_order(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.notify.PING_S", 0.001)
    received: list[str] = []
    listener = Listener(dsn, Settings.load(database_url=dsn), received.append)
    task = await listening(listener)
    sent = [f"müde {n}" for n in range(300)]
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        for message in sent:
            await conn.execute("select pg_notify('laneway', %s)", [message])
    await wait_until(lambda: len(received) >= len(sent))
    assert received == sent
    await end(task)


async def test_messages_of_one_transaction_arrive_together_in_order(dsn: str) -> None:
    received: list[str] = []
    listener = Listener(dsn, Settings.load(database_url=dsn), received.append)
    task = await listening(listener)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        await conn.execute(
            "select pg_notify('laneway', n || repeat('x', 4000)) from generate_series(1, 200) n"
        )
    await wait_until(lambda: len(received) == 200)
    assert [int(one.rstrip("x")) for one in received] == list(range(1, 201))
    await end(task)


async def test_lost_connection_ends_listening_with_an_error(dsn: str) -> None:
    listener = Listener(dsn, Settings.load(database_url=dsn), lambda message: None)
    task = await listening(listener)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        await conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'laneway listen' and datname = current_database()"
        )
    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(task, 60)
    assert not listener.is_listening


async def test_error_of_a_callback_ends_listening_with_that_error(dsn: str) -> None:
    def refuse(message: str) -> None:
        raise ValueError(message)

    listener = Listener(dsn, Settings.load(database_url=dsn), refuse)
    task = await listening(listener)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        await conn.execute("select pg_notify('laneway', 'unexpected')")
    with pytest.raises(ValueError, match="unexpected"):
        await asyncio.wait_for(task, 60)
