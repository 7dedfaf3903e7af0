"""An application for remote workers, importable by their child processes."""

from __future__ import annotations

import asyncio
import ctypes
import os
from typing import Any

from laneway import Context, Laneway, SyncContext

lw = Laneway(cancel_grace=0.3)

if lost_s := os.environ.get("LOST_S"):
    # A test need not wait as long as clocks may differ.
    import laneway.rpc.worker.worker

    setattr(laneway.rpc.worker.worker, "LOST_S", float(lost_s))  # noqa: B010 - it is final, but for this


@lw.handler("loop")
async def on_loop(ctx: Context, n: int) -> Any:
    return {"n": n, "attempt": ctx.attempt}


@lw.handler("thread")
def in_thread(ctx: SyncContext, n: int) -> Any:
    return {"n": n, "attempt": ctx.attempt}


@lw.handler("process", isolation="process")
def in_process(ctx: SyncContext, n: int) -> Any:
    return {"n": n, "attempt": ctx.attempt}


@lw.handler("finish_async")
async def finish_on_loop(ctx: Context) -> None:
    await ctx.finish(conn=None)


@lw.handler("finish_thread")
def finish_in_thread(ctx: SyncContext) -> None:
    ctx.finish(conn=None)


@lw.handler("finish_process", isolation="process")
def finish_in_process(ctx: SyncContext) -> None:
    ctx.finish(conn=None)


@lw.handler("hold_gil")
def hold_gil(ctx: SyncContext, seconds: float) -> str:
    # Called through PyDLL, a C function keeps the GIL: no other thread of the process runs.
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return "still mine"


@lw.handler("wait")
async def wait(ctx: Context) -> None:
    await ctx.save(os.getpid())
    await asyncio.Event().wait()


@lw.handler("submit_process", isolation="process")
def submit_in_process(ctx: SyncContext) -> None:
    lw.sync.submit("wait")
