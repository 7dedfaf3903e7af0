"""A small application with one handler of each kind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from laneway import (
    Approval,
    Cancel,
    Context,
    EndedJob,
    Laneway,
    Retry,
    RetryPolicy,
    Snooze,
    SyncContext,
)
from laneway.domain.approval import Analysis

lw = Laneway()
# What ran, in order.
calls: list[Any] = []


@lw.on_start
def load(resources: SimpleNamespace) -> None:
    resources.shelf = "A1"


@lw.middleware
async def stamp(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    if "unstamped" in ctx.tags:
        raise PermissionError("no stamp")
    return await call_next()


@lw.middleware
def stamp_plain(ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
    return call_next()


@lw.handler("find", max_retries=0)
async def find(ctx: Context, title: str) -> None:
    raise LookupError(title)


@lw.on_end(find, status="failed")
async def miss(ctx: Context, job: EndedJob) -> None:
    calls.append(("miss", job.payload["title"], job.error and job.error.type))


@lw.handler("shelve")
async def shelve(ctx: Context, title: str, copies: int = 1) -> int:
    await ctx.progress(copies, copies)
    calls.append(("shelve", title, ctx.resources.shelf))
    return copies


@lw.handler("bind", max_retries=2, retry=RetryPolicy(base=10, jitter=0.2))
def bind_book(ctx: SyncContext, title: str) -> str:
    calls.append(("bind", title, ctx.attempt))
    if title == "broken":
        raise ValueError("the spine is broken")
    return title.upper()


@lw.handler("press", isolation="process")
def press(ctx: SyncContext) -> int:
    calls.append("press")
    return os.getpid()


@lw.handler("lend")
async def lend(ctx: Context, title: str, at: datetime | None = None, priority: int = 0) -> None:
    await lw.submit("remind", {"title": title}, delay=3600)


@lw.handler("remind", lane="letters")
async def remind(ctx: Context, title: str) -> None:
    calls.append(("remind", title))


@lw.handler("signal")
async def signal(ctx: Context, kind: str) -> None:
    if ctx.attempt > 1:
        return
    raise {"snooze": Snooze(60), "cancel": Cancel("not today"), "retry": Retry(after=60)}[kind]


@lw.handler("again")
async def again(ctx: Context, n: int = 0) -> None:
    await again.submit(n=n + 1)


@lw.handler("wait_for_child")
async def wait_for_child(ctx: Context) -> object:
    job = await lw.submit("shelve", {"title": "child"})
    return await job.wait(timeout=60)


@lw.handler("collect")
async def collect(ctx: Context) -> list[object]:
    return [part.result async for part in ctx.results()]


@lw.handler("order")
async def order(ctx: Context, titles: list[str]) -> dict[str, object]:
    copies = await ctx.run_all("shelves", [shelve.job(title=title) for title in titles])
    await ctx.sleep("transport", 3600)
    receipt = await ctx.wait_event("paid", key="7", timeout=86400)
    return {"copies": copies, "by": receipt}


@lw.handler("hold_on_first_attempt")
async def hold_on_first_attempt(ctx: Context) -> int:
    if ctx.attempt == 1:
        await asyncio.sleep(600)
    return ctx.attempt


@lw.handler("stop_myself")
async def stop_myself(ctx: Context) -> None:
    await lw.cancel(ctx.job_id, "by itself")
    await asyncio.sleep(60)


@lw.handler("late", timeout=0.01)
async def late(ctx: Context) -> None:
    await asyncio.sleep(60)


@lw.handler("sell", approval=Approval())
async def sell(ctx: Context, title: str) -> None:
    calls.append(("sell", title))


@sell.analyze
async def price(title: str) -> Analysis:
    return Analysis(plan=[f"sell {title}"])


@lw.schedule("nightly-count", cron="0 2 * * *")
@lw.handler("count_books")
async def count_books(ctx: Context) -> None:
    calls.append("count_books")


@lw.check("is_open")
async def is_open() -> bool:
    return "closed" not in calls


@lw.schedule("dust", cron="0 3 * * *", check="is_open")
@lw.handler("dust")
async def dust(ctx: Context) -> None:
    calls.append("dust")
