"""Handlers of jobs that come after others, run sub-jobs, sleep and wait for events.

Each result depends only on the job and on what it waited for, so that the test knows it in advance.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import psycopg

from laneway import Approval, Context
from tests.crash.app import QUICKLY, lw, note, running

__all__ = ["lw"]

MANY = 200
LINGER_S = 0.02
REVIEWED, NEVER = "reviewed", "never"


def digest(*parts: object) -> str:
    """A short text that depends on every part and on their order."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


# Jobs of flows ------------------------------------------------------------------------------------


async def _result(ctx: Context, op: str, looks: bool) -> str:
    """The job's digest, with those of the jobs that it came after."""
    came = [f"{part.status}:{part.result}" async for part in ctx.results()] if looks else []
    return digest(op, *came)


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


# Sub-jobs, sleeps and events ----------------------------------------------------------------------


@lw.handler("page", retry=QUICKLY, max_retries=MANY)
async def page(ctx: Context, op: str, ms: int) -> str:
    with running(ctx):
        await asyncio.sleep(ms / 1000)
    return digest(op)


@lw.handler("page_broken", max_retries=0)
async def page_broken(ctx: Context, op: str, ms: int) -> None:
    with running(ctx):
        raise RuntimeError("it never works")


@lw.handler("chapter", retry=QUICKLY, max_retries=MANY)
async def chapter(ctx: Context, op: str, pages: int, ms: int) -> str:
    """A sub-job with sub-jobs."""
    with running(ctx):
        jobs = [page.job(op=f"{op}/{n}", ms=ms) for n in range(pages)]
        return digest(op, *await ctx.run_all("pages", jobs))


@lw.handler("book", retry=QUICKLY, max_retries=MANY)
async def book(
    ctx: Context,
    op: str,
    plan: list[str],
    pages: int,
    ms: int,
    nap: float,
    events: int,
    is_early: bool,
) -> str:
    """Do what the plan says, part by part; each part is remembered."""
    with running(ctx):
        parts: list[Any] = [op]
        for n, kind in enumerate(plan):
            name = f"{n}-{kind}"
            parts.append(await _part(ctx, name, kind, op, pages, ms, nap))
            note("passed", ctx, name=name)
        return digest(*parts)


async def _part(
    ctx: Context, name: str, kind: str, op: str, pages: int, ms: int, nap: float
) -> Any:
    place = f"{op}/{name}"
    if kind == "step":
        return await ctx.step(name, _noted_step, ctx, name, op)
    if kind == "pages":
        jobs = [page.job(op=f"{place}/{n}", ms=ms) for n in range(pages)]
        return await ctx.run_all(name, jobs)
    if kind == "chapters":
        jobs = [chapter.job(op=f"{place}/{n}", pages=2, ms=ms) for n in range(2)]
        return await ctx.run_all(name, jobs)
    if kind == "broken":
        mixed = [page.job(op=f"{place}/0", ms=ms), page_broken.job(op=f"{place}/1", ms=ms)]
        ended = await ctx.run_all(name, mixed, failures="return")
        return [f"{one.status}:{one.result}" for one in ended]
    if kind == "sleep":
        note("sleeps", ctx, name=name, seconds=nap)
        return await ctx.sleep(name, nap)
    if kind == "event":
        return (await ctx.wait_event(REVIEWED, key=op, name=name))["n"]
    try:
        await ctx.wait_event(NEVER, key=op, name=name, timeout=nap)
    except TimeoutError:
        return "timeout"
    raise AssertionError("an event that was never sent")


async def _noted_step(ctx: Context, name: str, op: str) -> str:
    note("ran", ctx, name=name)
    return digest(op, name)


@lw.handler("doomed_book", retry=QUICKLY, max_retries=MANY)
async def doomed_book(ctx: Context, op: str, pages: int) -> None:
    """Wait for sub-jobs that never end; an operator cancels it."""
    with running(ctx):
        jobs = [endless_page.job(op=f"{op}/{n}") for n in range(pages)]
        await ctx.run_all("pages", jobs)


@lw.handler("endless_page", retry=QUICKLY, max_retries=MANY)
async def endless_page(ctx: Context, op: str) -> None:
    with running(ctx):
        await asyncio.sleep(3600)
