"""Approve, cancel and retry: python -m tests.crash.flow_operator NAME.

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
from tests.crash.flow_plans import MEND

PAUSE_S = 0.02
AT_A_TIME = 20
# It reads all ended jobs, so not every time.
MEND_SHARE = 0.1

_AWAITING = f"""
select j.id::text, j.payload ->> 'fate' from laneway.awaiting w join laneway.jobs j using (seq)
 where j.payload ? 'fate' order by w.seq limit {AT_A_TIME}
"""
# Jobs that run until they are cancelled.
_ENDLESS = f"""
select j.id::text from laneway.lease l join laneway.jobs j using (seq)
 where l.job_type = 'node_endless' and l.cancel_requested_at is null limit {AT_A_TIME}
"""
_TO_MEND = f"""
select j.seq, j.job_type, j.payload ->> 'op', f.id
  from laneway.outcome o join laneway.jobs j using (seq) join laneway.flows f on f.seq = j.flow
 where f.name = '{MEND}' and o.status <> 'completed' order by j.seq limit {AT_A_TIME}
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
