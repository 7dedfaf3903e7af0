"""The listening connection: each message once, in order, also while it is being checked."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import uvloop

from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable
from laneway.store.database import connect
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


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_lost_connection_leaves_its_number_to_the_next_socket(
    dsn: str, monkeypatch: pytest.MonkeyPatch, make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """The number of a closed socket is free at once: its next owner must be able to read."""
    numbers: list[int] = []

    async def connect_and_note(*args: Any) -> Any:
        conn = await connect(*args)
        numbers.append(conn.fileno())
        return conn

    monkeypatch.setattr("laneway.store.notify.connect", connect_and_note)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        listener = Listener(dsn, Settings.load(database_url=dsn), lambda message: None)
        task = await listening(listener)
        received, pairs = asyncio.Event(), list[socket.socket]()

        def reuse() -> None:
            if not _is_closed(numbers[0]):
                loop.call_soon(reuse)
                return
            while not any(one.fileno() == numbers[0] for one in pairs):
                pairs.extend(socket.socketpair())
            place = [one.fileno() for one in pairs].index(numbers[0])
            loop.add_reader(numbers[0], received.set)
            loop.call_later(0.1, pairs[place ^ 1].send, b"x")

        loop.call_soon(reuse)
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            await conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'laneway listen' and datname = current_database()"
            )
        with pytest.raises(DatabaseUnavailable):
            await asyncio.wait_for(task, 60)
        await asyncio.wait_for(received.wait(), 60)
        loop.remove_reader(numbers[0])
        for one in pairs:
            one.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(work())


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False
