"""Handlers with analyses, approvals, limits, keys and schedules."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from laneway import Analysis, Approval, Context, SyncContext
from laneway.control import lanes
from tests.crash.app import QUICKLY, lw, note, passed, running

__all__ = ["lw"]

MANY = 200
LINGER_S = 0.03


# Analysis and approval ----------------------------------------------------------------------------


@lw.handler("guarded", retry=QUICKLY, max_retries=MANY, approval=Approval())
async def guarded(ctx: Context, op: str, needs: str, fate: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return op


@guarded.analyze
async def plan(ctx: Context, op: str, fate: str) -> Analysis:
    """With `linger` the first try waits until it is killed."""
    note("analyzing", ctx, fate=fate)
    if fate == "linger" and ctx.attempt == 1:
        await passed(Path(os.environ["CRASH_SINK"], "over"))
    if fate == "hopeless":
        raise RuntimeError("the cost is unknown")
    return Analysis(plan={"for": op}, cost=1, currency="EUR")


@lw.handler(
    "cheap", retry=QUICKLY, max_retries=MANY, approval=Approval(below_cost=5, currency="EUR")
)
async def cheap(ctx: Context, op: str, needs: str, fate: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return op


cheap.analyze(plan)


@lw.handler("brief", retry=QUICKLY, max_retries=MANY, approval=Approval(expires=0.3))
async def brief(ctx: Context, op: str, needs: str, fate: str, ms: int) -> str:
    """A job type whose approval expires soon."""
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return op


# Limits and keys ----------------------------------------------------------------------------------


@contextlib.contextmanager
def holding(ctx: Context | SyncContext, *names: str) -> Iterator[None]:
    """Record what is held, from after it was acquired until before it is released."""
    note("hold", ctx, names=names)
    try:
        yield
    finally:
        note("let_go", ctx, names=names)


@lw.handler("limited", retry=QUICKLY, max_retries=MANY, limits=["scarce"])
async def limited(ctx: Context, op: str, ms: int) -> str:
    with running(ctx), holding(ctx, "scarce"):
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("limited_eager", retry=QUICKLY, max_retries=MANY, limits=["scarce"])
async def limited_eager(ctx: Context, op: str, ms: int) -> str:
    with running(ctx), holding(ctx, "scarce"):
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("limited_twice", retry=QUICKLY, max_retries=MANY, limits=["scarce", "dear"])
def limited_twice(ctx: SyncContext, op: str, ms: int) -> str:
    with running(ctx), holding(ctx, "scarce", "dear"):
        time.sleep(ms / 1000)
    return op


@lw.handler("calling", retry=QUICKLY, max_retries=MANY)
async def calling(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        async with ctx.limit("call"):
            with holding(ctx, "call"):
                await asyncio.sleep(ms / 1000)
    return op


@lw.handler("calling_eager", retry=QUICKLY, max_retries=MANY)
async def calling_eager(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        async with ctx.limit("call"):
            with holding(ctx, "call"):
                await asyncio.sleep(ms / 1000)
    return op


@lw.handler("calling_plainly", retry=QUICKLY, max_retries=MANY)
def calling_plainly(ctx: SyncContext, op: str, ms: int) -> str:
    with running(ctx), ctx.limit("call"), holding(ctx, "call"):
        time.sleep(ms / 1000)
    return op


@lw.handler("keyed", retry=QUICKLY, max_retries=MANY)
async def keyed(ctx: Context, op: str, key: str, ms: int) -> str:
    with running(ctx), holding(ctx, key):
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("keyed_apart", retry=QUICKLY, max_retries=MANY, limits=["dear"])
async def keyed_apart(ctx: Context, op: str, key: str, ms: int) -> None:
    """Finish in the application's transaction, then run a little longer."""
    with running(ctx):
        async with await psycopg.AsyncConnection.connect(os.environ["CRASH_SINK_DSN"]) as conn:
            with holding(ctx, key, "dear"):
                await asyncio.sleep(ms / 1000)
            await ctx.finish(conn=conn, result=op)
        await asyncio.sleep(LINGER_S)


# Changes ------------------------------------------------------------------------------------------


@lw.handler("tuner", retry=QUICKLY, max_retries=MANY)
async def tuner(ctx: Context, op: str, lane: str, poll_ms: int, gate: str) -> str:
    """Change a lane from inside a worker, once the test opens the gate."""
    with running(ctx):
        await passed(Path(os.environ["CRASH_SINK"], gate))
        await lanes.tune(lw.database, lane, {"poll_interval_ms": poll_ms}, by="tuner")
    return op


# Schedules ----------------------------------------------------------------------------------------


@lw.handler("tick", retry=QUICKLY, max_retries=MANY)
async def tick(ctx: Context) -> None:
    with running(ctx):
        pass


_asked = itertools.count()


@lw.check("two_of_three", timeout=1.0)
async def two_of_three() -> bool:
    note("check")
    await asyncio.sleep(LINGER_S)
    return next(_asked) % 3 != 0
