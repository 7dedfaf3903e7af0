"""Handlers that children of a worker import, for laws that hold in every isolation."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from laneway import Cancel, Context, Laneway, Retry, Snooze, SyncContext
from tests.engine.odd_exceptions import ODD
from tests.support.worker_harness import SOON

lw = Laneway("postgresql://unused@nowhere/nothing")


@lw.handler("process_add", isolation="process")
def add(ctx: SyncContext, a: int, b: int = 1) -> int:
    return a + b


@lw.handler("process_say", isolation="process", max_retries=0)
def say(ctx: SyncContext, text: str) -> None:
    raise ValueError(text)


def _validate(count: int) -> None:
    raise LookupError(f"no page {count}")


@lw.handler("raises_deep", isolation="process", max_retries=0)
def raises_deep(ctx: SyncContext) -> None:
    _validate(7)


@lw.handler("process_raise", isolation="process", retry=SOON)
def fail(ctx: SyncContext, how: str) -> Any:
    match how:
        case "error":
            raise ValueError("a \x00 NUL and a \ud800 surrogate")
        case "exit":
            sys.exit(3)
        case "retry":
            raise Retry("busy", after=0.05)
        case "snooze" if ctx.attempt == 1:
            raise Snooze(0.05)
        case "cancel":
            raise Cancel("nothing to do")
    return ctx.attempt


@lw.handler("process_odd", isolation="process")
def odd(ctx: SyncContext, how: str) -> None:
    raise ODD[how]()


@lw.handler("process_forgets", isolation="process", retry=SOON)
async def forgets(ctx: Context) -> None:
    ctx.sleep("a", 1)  # type: ignore[unused-coroutine]


@lw.handler("suspect_async")
async def suspect_async(ctx: Context) -> int:
    await ctx.progress(1, 2)
    return os.getpid()


@lw.handler("suspect_thread")
def suspect_thread(ctx: SyncContext) -> int:
    return os.getpid()


@lw.handler("suspect_culprit", retry=SOON)
async def suspect_culprit(ctx: Context) -> None:
    os._exit(3)


@lw.handler("process_wait", isolation="process", timeout=60)
def wait(ctx: SyncContext) -> None:
    ctx.save({"page": 7})
    ctx.progress(1, 2, "waiting")
    while True:
        ctx.check()
        threading.Event().wait(0.01)


@lw.handler("process_deaf", isolation="process")
def deaf(ctx: SyncContext) -> None:
    ctx.save(os.getpid())
    threading.Event().wait()


@lw.handler("process_obliging", isolation="process")
def obliging(ctx: SyncContext) -> str:
    ctx.save("began")
    while not ctx.cancelled:
        threading.Event().wait(0.01)
    return "kept"


@lw.handler("process_late", isolation="process", timeout=0.3, retry=SOON)
def late(ctx: SyncContext) -> None:
    threading.Event().wait()
