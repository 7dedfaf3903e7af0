"""An application for real worker processes; the database is in their environment."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time

from laneway import Analysis, Context, Laneway, SyncContext
from tests.support.worker_harness import SOON

lw = Laneway()


@lw.handler("pid")
async def pid(ctx: Context) -> int:
    return os.getpid()


@lw.handler("wait", retry=SOON)
async def wait(ctx: Context) -> None:
    await ctx.save(os.getpid())
    await asyncio.Event().wait()


@lw.handler("nap")
async def nap(ctx: Context, seconds: float) -> int:
    await asyncio.sleep(seconds)
    return os.getpid()


@lw.handler("block_loop")
async def block_loop(ctx: Context, seconds: float) -> str:
    time.sleep(seconds)  # noqa: ASYNC251 -- that is the point
    return "still mine"


@lw.handler("hold_gil")
def hold_gil(ctx: SyncContext, seconds: float) -> str:
    # Called through PyDLL, a C function keeps the GIL: no other thread of the process runs.
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return "still mine"


@lw.handler("hang", retry=SOON)
async def hang(ctx: Context) -> None:
    await ctx.save(os.getpid())
    time.sleep(600)  # noqa: ASYNC251 -- that is the point


@lw.handler("costly", approval=True, retry=SOON)
async def costly(ctx: Context) -> int:
    return ctx.attempt


@costly.analyze
async def plan(ctx: Context) -> Analysis:
    if ctx.attempt == 1:
        await asyncio.Event().wait()
    return Analysis(tokens=ctx.attempt)
