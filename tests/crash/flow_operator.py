"""Approve, cancel, retry and send events: python -m tests.crash.flow_operator NAME.

Several of them do the same things at the same time. The test kills them at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from pathlib import Path
from typing import Any

import psycopg

from laneway import Laneway
from laneway.errors import DatabaseUnavailable, Refused
from tests.crash.flow_app import REVIEWED
from tests.crash.flow_plans import MEND

PAUSE_S = 0.02
AT_A_TIME = 20
# It reads all ended jobs, so not every time.
MEND_SHARE = 0.1

_AWAITING = f"""
select j.id::text, j.payload ->> 'fate' from laneway.awaiting w join laneway.jobs j using (seq)
 where j.payload ? 'fate' order by w.seq limit {AT_A_TIME}
"""
# Jobs that run until they are cancelled, and those that wait for such sub-jobs.
_ENDLESS = f"""
select j.id::text from laneway.lease l join laneway.jobs j using (seq)
 where l.job_type = 'node_endless' and l.cancel_requested_at is null
union all
select j.id::text from laneway.waiting w join laneway.jobs j using (seq)
 where w.job_type = 'doomed_book' limit {AT_A_TIME}
"""
_TO_MEND = f"""
select j.seq, j.job_type, j.payload ->> 'op', f.id
  from laneway.outcome o join laneway.jobs j using (seq) join laneway.flows f on f.seq = j.flow
 where f.name = '{MEND}' and o.status <> 'completed' order by j.seq limit {AT_A_TIME}
"""
# The next event of each book: at once, or when its handler waits.
_TO_SEND = f"""
select j.payload ->> 'op', s.n + 1
  from (select seq from laneway.ready union all select seq from laneway.lease
        union all select seq from laneway.waiting) alive
  join laneway.jobs j using (seq)
 cross join lateral (select count(*) as n from crash.sent s where s.op = j.payload ->> 'op') s
 where j.job_type = 'book' and s.n < (j.payload ->> 'events')::integer
   and (j.payload ->> 'is_early' = 'true'
        or exists (select from laneway.handler_waits h
                    where h.seq = j.seq and h.event = '{REVIEWED}' and h.done_at is null))
 order by random() limit {AT_A_TIME}
"""
_SEND = f"""
with sent as (
    insert into crash.sent (op, n) values (%(op)s, %(n)s) on conflict do nothing returning n
)
select e.id from sent cross join lateral laneway.send_event(
    '{REVIEWED}', %(op)s, jsonb_build_object('n', %(n)s::integer), wake => true) e
"""

Conn = psycopg.AsyncConnection[tuple[Any, ...]]


async def main(name: str) -> None:
    dsn = os.environ["LANEWAY_DATABASE_URL"]
    async with Laneway(dsn) as client:
        while True:
            with contextlib.suppress(psycopg.OperationalError, DatabaseUnavailable):
                async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
                    while True:
                        await look(client, conn, name)
                        await asyncio.sleep(PAUSE_S * random.random())
            await asyncio.sleep(0.1)


async def look(client: Laneway, conn: Conn, name: str) -> None:
    for job, fate in await _rows(conn, _AWAITING):
        with contextlib.suppress(Refused):
            if fate == "rejected":
                await client.reject(job, by=name, reason="not wanted")
            else:
                await client.approve(job, by=name)
    for (job,) in await _rows(conn, _ENDLESS):
        with contextlib.suppress(Refused):
            await client.cancel(job, by=name)
    if random.random() < MEND_SHARE:
        await _mend(conn)
    for op, n in await _rows(conn, _TO_SEND):
        await conn.execute(_SEND.encode(), {"op": op, "n": n})


async def _mend(conn: Conn) -> None:
    """Mend failed jobs, then retry them one by one or with their whole flow."""
    found = await _rows(conn, _TO_MEND)
    for _, job_type, op, _ in found:
        if job_type == "node_mended":
            Path(os.environ["CRASH_SINK"], f"mended-{op}").touch()
    for seq, _, _, flow in found:
        if random.random() < 0.5:
            await conn.execute("select laneway.retry(%s)", [seq])
        else:
            await conn.execute("select laneway.retry_flow(%s)", [flow])
    if found:
        await conn.execute("select pg_notify('laneway', 'wake *')")


async def _rows(conn: Conn, query: str) -> list[tuple[Any, ...]]:
    return await (await conn.execute(query.encode())).fetchall()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
