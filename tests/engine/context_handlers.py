"""Handlers, a retry function and middleware that children of a worker import."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from laneway import Context, Laneway, Snooze, SyncContext

lw = Laneway("postgresql://unused@nowhere/nothing")


class Fatal(Exception):
    """Not worth a retry."""


def seen(ctx: Context | SyncContext) -> dict[str, Any]:
    return {
        "job_type": ctx.job_type,
        "lane": ctx.lane,
        "max_retries": ctx.max_retries,
        "is_last_attempt": ctx.is_last_attempt,
        "tags": list(ctx.tags),
        "created_by": ctx.created_by,
    }


def decide(n: int, error: BaseException) -> float | None:
    """No retry of Fatal, a broken decision of KeyError, else at once."""
    if isinstance(error, KeyError):
        raise RuntimeError("cannot decide")
    return None if isinstance(error, (Fatal, TimeoutError)) else 0.01 * n


ERRORS: dict[str, type[Exception]] = {"fatal": Fatal, "key": KeyError, "value": ValueError}


def act(ctx: Context | SyncContext, how: str) -> Any:
    if how in ERRORS:
        raise ERRORS[how](how)
    if how == "snooze" and ctx.attempt == 1:
        raise Snooze(0.01)
    return how


@lw.handler("async_seen")
async def async_seen(ctx: Context) -> dict[str, Any]:
    return seen(ctx)


@lw.handler("thread_seen")
def thread_seen(ctx: SyncContext) -> dict[str, Any]:
    return seen(ctx)


@lw.handler("process_seen", isolation="process")
def process_seen(ctx: SyncContext) -> dict[str, Any]:
    return seen(ctx)


@lw.handler("process_async_seen", isolation="process")
async def process_async_seen(ctx: Context) -> dict[str, Any]:
    return seen(ctx)


@lw.handler("async_act", retry=decide)
async def async_act(ctx: Context, how: str) -> Any:
    return act(ctx, how)


@lw.handler("thread_act", retry=decide)
def thread_act(ctx: SyncContext, how: str) -> Any:
    return act(ctx, how)


@lw.handler("process_act", isolation="process", retry=decide)
def process_act(ctx: SyncContext, how: str) -> Any:
    return act(ctx, how)


wrapped = Laneway("postgresql://unused@nowhere/nothing")


@wrapped.middleware
async def outer(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    ctx.log(f"outer before {ctx.job_type}")
    try:
        result = await call_next()
    except ValueError as error:
        ctx.log(f"outer saw {error}")
        raise
    return [*result, "outer"]


@wrapped.middleware
async def inner(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    ctx.log("inner before")
    return [*await call_next(), "inner"]


@wrapped.middleware
def plain_outer(ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
    ctx.log(f"outer before {ctx.job_type}")
    try:
        result = call_next()
    except ValueError as error:
        ctx.log(f"outer saw {error}")
        raise
    return [*result, "outer"]


@wrapped.middleware
def plain_inner(ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
    ctx.log("inner before")
    return [*call_next(), "inner"]


@wrapped.handler("async_job", max_retries=0)
async def async_job(ctx: Context, fails: bool = False) -> list[str]:
    if fails:
        raise ValueError("no luck")
    return ["handler"]


@wrapped.handler("thread_job", max_retries=0)
def thread_job(ctx: SyncContext, fails: bool = False) -> list[str]:
    if fails:
        raise ValueError("no luck")
    return ["handler"]


@wrapped.handler("process_job", isolation="process", max_retries=0)
def process_job(ctx: SyncContext, fails: bool = False) -> list[str]:
    if fails:
        raise ValueError("no luck")
    return ["handler"]


impatient = Laneway("postgresql://unused@nowhere/nothing")


@impatient.middleware
async def fall_back(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    try:
        async with asyncio.timeout(0.01):
            return await call_next()
    except TimeoutError:
        return "fallback"


@impatient.handler("async_sleeper", max_retries=0)
async def async_sleeper(ctx: Context) -> str:
    await asyncio.Event().wait()
    return "done"


@impatient.handler("process_sleeper", isolation="process", max_retries=0)
async def process_sleeper(ctx: Context) -> str:
    await asyncio.Event().wait()
    return "done"


forgetful = Laneway("postgresql://unused@nowhere/nothing")


async def fetch() -> str:
    return "fetched"


@forgetful.handler("async_forgets", max_retries=1, retry=decide)
async def async_forgets(ctx: Context) -> Any:
    return fetch()


@forgetful.handler("thread_forgets", max_retries=1, retry=decide)
def thread_forgets(ctx: SyncContext) -> Any:
    return fetch()


@forgetful.handler("process_forgets", isolation="process", max_retries=1, retry=decide)
def process_forgets(ctx: SyncContext) -> Any:
    return fetch()
