"""The application under test. Its handlers record what they do in files outside Laneway.

One file per process, one `write` per line: a kill never leaves half a line.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from laneway import Context, Laneway, RetryPolicy, Snooze, SyncContext
from laneway.errors import StaleAttempt

lw = Laneway()

QUICKLY = RetryPolicy(base=0.1, cap=0.4)
TICK_S = 0.01


def note(what: str, ctx: Context | SyncContext | None = None, **more: Any) -> None:
    """Record one event in the format of laneway.testing.history."""
    event = {
        "what": what,
        "job": str(ctx.job_id) if ctx else None,
        "attempt": ctx.attempt if ctx else None,
        "at": time.time(),
        "more": {"pid": os.getpid(), "t": time.monotonic(), **more},
    }
    path = Path(os.environ["CRASH_SINK"]) / f"{os.getpid()}.jsonl"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, json.dumps(event).encode() + b"\n")
    finally:
        os.close(fd)


class running:
    """Record the start and the end of a handler, however it ends."""

    def __init__(self, ctx: Context | SyncContext) -> None:
        self._ctx = ctx

    def __enter__(self) -> None:
        note("start", self._ctx)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        note("stop", self._ctx, how=kind.__name__ if kind else "returned")


async def passed(gate: Path) -> None:
    """Wait until the test opens a gate."""
    while not gate.exists():  # noqa: ASYNC110 - another process opens it
        await asyncio.sleep(TICK_S)


# A mixed load -----------------------------------------------------------------------------------


@lw.handler("quick", retry=QUICKLY)
async def quick(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("blocking", retry=QUICKLY)
def blocking(ctx: SyncContext, op: str, ms: int) -> str:
    with running(ctx):
        time.sleep(ms / 1000)
    return op


@lw.handler("isolated", retry=QUICKLY, lane="isolated", isolation="process")
def isolated(ctx: SyncContext, op: str, ms: int) -> str:
    with running(ctx):
        time.sleep(ms / 1000)
    return op


@lw.handler("tracked", retry=QUICKLY, max_retries=20)
async def tracked(ctx: Context, op: str, items: int, ms: int) -> str:
    with running(ctx):
        async for item in ctx.track(range(items), durable=True):
            note("item", ctx, item=item)
            await asyncio.sleep(ms / 1000)
    return op


@lw.handler("flaky", retry=QUICKLY)
async def flaky(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
        if ctx.attempt == 1:
            raise RuntimeError("the first attempt always fails")
    return op


@lw.handler("snoozing", retry=QUICKLY)
async def snoozing(ctx: Context, op: str) -> str:
    with running(ctx):
        if ctx.attempt == 1:
            raise Snooze(0.2)
    return op


@lw.handler("fragile", retry=QUICKLY, max_retries=0)
async def fragile(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("narrow", retry=QUICKLY, lane="narrow")
async def narrow(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("endless", retry=QUICKLY, max_retries=20)
async def endless(ctx: Context, op: str) -> str:
    with running(ctx):
        await asyncio.sleep(3600)
    return op


# Superseded attempts ------------------------------------------------------------------------------


@lw.handler("zombie", retry=QUICKLY)
async def zombie(ctx: Context, op: str, kind: str, gates: str) -> dict[str, int]:
    """The first attempt writes when its gate opens; the second runs until its own gate opens."""
    with running(ctx):
        await effect(ctx)
        if ctx.attempt > 1:
            await ctx.progress(2, 2, "second")
            await passed(Path(gates, "end"))
            return {"by": ctx.attempt}
        await passed(Path(gates, "write"))
        await effect(ctx)
        if kind == "fail":
            raise RuntimeError("a failure of a superseded attempt")
        if kind == "progress":
            ctx.log("a line of a superseded attempt")
            await ctx.progress(1, 2, "first")
            try:
                await ctx.save({"by": ctx.attempt})
            except StaleAttempt:
                note("notified", ctx)
                raise
        return {"by": ctx.attempt}


async def effect(ctx: Context) -> None:
    """An effect outside Laneway that checks the attempt itself."""
    async with await psycopg.AsyncConnection.connect(
        os.environ["CRASH_SINK_DSN"], autocommit=True
    ) as conn:
        await conn.execute("select crash.effect(%s, %s)", [ctx.job_id, ctx.attempt])


@lw.handler("standstill", retry=QUICKLY, stale="progress")
async def standstill(ctx: Context, op: str, moves_first: bool) -> dict[str, int]:
    """The first attempt makes no progress; it writes once more when it is stopped."""
    with running(ctx):
        if ctx.attempt > 1:
            return {"by": ctx.attempt}
        if moves_first:
            await ctx.save({"moved": True})
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            try:
                await ctx.save({"by": ctx.attempt})
            except StaleAttempt:
                note("notified", ctx)
            raise
    raise AssertionError("an hour has passed")


# Poison -------------------------------------------------------------------------------------------


@lw.handler("poison", retry=QUICKLY, max_retries=2, isolation="process", memory_mb=512)
def poison(ctx: SyncContext, op: str, kind: str) -> None:
    with running(ctx):
        if kind == "memory":
            hoard = []
            while True:
                hoard.append(bytearray(16 << 20))
        note("death", ctx)
        if kind == "exit":
            os._exit(3)
        elif kind == "segfault":
            ctypes.string_at(0)
        elif kind == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError(f"survived {kind}")


@lw.handler("poison_gil", retry=QUICKLY, max_retries=2, isolation="process", timeout=1.0)
def poison_gil(ctx: SyncContext, op: str) -> None:
    note("start", ctx)
    note("death", ctx)  # it will be killed
    # One call into C that backtracks for years and never releases the GIL.
    re.match(r"(a+)+$", "a" * 60 + "b")


@lw.handler("suicide_exit", retry=QUICKLY, max_retries=2, lane="fragile_exit")
async def suicide_exit(ctx: Context, op: str) -> None:
    """End the whole worker process."""
    note("start", ctx)
    note("death", ctx)
    os._exit(3)


@lw.handler("suicide_kill", retry=QUICKLY, max_retries=2, lane="fragile_kill")
async def suicide_kill(ctx: Context, op: str) -> None:
    note("start", ctx)
    note("death", ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@lw.handler("culprit", retry=QUICKLY, max_retries=2)
async def culprit(ctx: Context, op: str) -> None:
    """Kill the process with all other jobs in it, from the event loop."""
    note("start", ctx)
    await asyncio.sleep(0.3)
    note("death", ctx)
    ctypes.string_at(0)


@lw.handler("hidden_culprit", retry=QUICKLY, max_retries=2)
def hidden_culprit(ctx: SyncContext, op: str) -> None:
    """The same from a thread: the supervisor cannot see which job did it."""
    note("start", ctx)
    time.sleep(0.3)
    note("death", ctx)
    ctypes.string_at(0)


# Shutting down ------------------------------------------------------------------------------------


@lw.handler("patient", retry=QUICKLY)
async def patient(ctx: Context, op: str, seconds: float) -> str:
    """Only the first attempt sleeps."""
    with running(ctx):
        if ctx.attempt == 1:
            await asyncio.sleep(seconds)
    return op


# Forks ------------------------------------------------------------------------------------------


@lw.handler("forking", retry=QUICKLY)
async def forking(ctx: Context, op: str, how: str) -> str:
    """Leave a process that outlives the worker, in the first attempt only."""
    if ctx.attempt > 1:
        return op
    if how == "pool":
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            child = await asyncio.wrap_future(pool.submit(os.getpid))
            note("forked", ctx, child=child)
            await asyncio.wrap_future(pool.submit(time.sleep, 60))
        return op
    child = os.fork()
    if child == 0:
        if how == "leave":
            return "from the forked child"
        time.sleep(60)  # noqa: ASYNC251 - a separate process
        os._exit(0)
    note("forked", ctx, child=child)
    await asyncio.sleep(60)
    return op
