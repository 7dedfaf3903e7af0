"""A batch without COPY: one call, with each set of options sent once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import psycopg

from laneway.domain.job import NewJob, new_job_id
from laneway.store.batch import Batch, Entry, store_batch
from laneway.store.caller_connection import CallerConnection
from laneway.store.statement import Row, Statement


class ConnectionWithoutCopy(CallerConnection):
    """A caller's connection whose driver has no COPY; remembers its statements."""

    is_async = True

    def __init__(self, conn: psycopg.AsyncConnection[Any]) -> None:
        super().__init__(conn)
        self.ran: list[Statement[Any]] = []

    async def _rows(self, statement: Statement[Any]) -> Iterable[Row]:
        self.ran.append(statement)
        cursor = await self._conn.execute(statement.text.encode(), statement.params)
        return list(await cursor.fetchall())


async def test_equal_options_of_a_batch_are_sent_once(dsn: str) -> None:
    entries: list[Entry] = [
        (new_job_id(), f'{{"n": {n}}}', NewJob(id=new_job_id(), job_type="t", priority=n % 2))
        for n in range(6)
    ]
    async with await psycopg.AsyncConnection.connect(dsn, application_name="tests") as conn:
        caller = ConnectionWithoutCopy(conn)
        batch = Batch(len(entries), frozenset({"t"}), is_keyed=False, entries=entries)
        answers = await store_batch(caller, batch)
        stored = await conn.execute(
            "select payload ->> 'n', priority from laneway.jobs order by seq"
        )
        assert await stored.fetchall() == [(str(n), n % 2) for n in range(6)]
    assert [job_id for job_id, _, _ in answers] == [job_id for job_id, _, _ in entries]
    kinds = json.loads(str(caller.ran[-1].params["kinds"]))
    assert [kind["priority"] for kind in kinds] == [0, 1]
