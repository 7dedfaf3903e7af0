"""Handlers of jobs that come after others.

Each result depends only on the job and on what it waited for, so that the test knows it in advance.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import psycopg

from laneway import Approval, Context
from tests.crash.app import QUICKLY, lw, running

__all__ = ["lw"]

MANY = 200
LINGER_S = 0.02
_PARENTS = """
select r.status, r.result::jsonb #>> '{}' from laneway.jobs j
 cross join lateral laneway.results_of(j.seq, 0, 100) r where j.id = %s order by r.place
"""


def digest(*parts: object) -> str:
    """A short text that depends on every part and on their order."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


# Jobs of flows ------------------------------------------------------------------------------------


async def _result(ctx: Context, op: str, looks: bool) -> str:
    """The job's digest, with those of the jobs that it came after."""
    if not looks:
        return digest(op)
    async with await psycopg.AsyncConnection.connect(os.environ["CRASH_SINK_DSN"]) as conn:
        parts = await (await conn.execute(_PARENTS, [ctx.job_id])).fetchall()
    return digest(op, *(f"{status}:{result}" for status, result in parts))


@lw.handler("node", retry=QUICKLY, max_retries=MANY)
async def node(ctx: Context, op: str, ms: int, looks: bool) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
        return await _result(ctx, op, looks)


@lw.handler("node_apart", retry=QUICKLY, max_retries=MANY)
async def node_apart(ctx: Context, op: str, ms: int, looks: bool) -> None:
    """Finish in the application's transaction, then run a little longer."""
    with running(ctx):
        await asyncio.sleep(ms / 1000)
        result = await _result(ctx, op, looks)
        async with await psycopg.AsyncConnection.connect(os.environ["CRASH_SINK_DSN"]) as conn:
            await ctx.finish(conn=conn, result=result)
        await asyncio.sleep(LINGER_S)


@lw.handler("node_guarded", retry=QUICKLY, max_retries=MANY, approval=Approval())
async def node_guarded(ctx: Context, op: str, ms: int, looks: bool, fate: str) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
        return await _result(ctx, op, looks)


@lw.handler("node_broken", max_retries=0)
async def node_broken(ctx: Context, op: str, ms: int, looks: bool) -> None:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
        raise RuntimeError("it never works")


@lw.handler("node_mended", max_retries=0)
async def node_mended(ctx: Context, op: str, ms: int, looks: bool) -> str:
    """Fail until an operator has mended it."""
    with running(ctx):
        await asyncio.sleep(ms / 1000)
        if not Path(os.environ["CRASH_SINK"], f"mended-{op}").exists():
            raise RuntimeError("it does not work yet")
        return await _result(ctx, op, looks)


@lw.handler("node_endless", retry=QUICKLY, max_retries=MANY)
async def node_endless(ctx: Context, op: str, ms: int, looks: bool) -> None:
    """Run until an operator cancels it."""
    with running(ctx):
        await asyncio.sleep(3600)
