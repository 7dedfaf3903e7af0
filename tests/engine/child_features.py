"""Handlers in child processes that use steps, limits and their own transaction."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from laneway import Context, Laneway, SyncContext
from laneway.engine.worker import Worker
from laneway.errors import Refused
from laneway.store.database import Database
from laneway.store.statement import Statement
from tests.support.worker_harness import SOON, WorkerHarness

lw = Laneway("postgresql://unused@nowhere/nothing")


async def adopted_by(harness: WorkerHarness, **options: Any) -> Worker:
    """A worker of the harness that runs these handlers too."""
    for handler in lw.handlers:
        harness.lw.handlers.add(handler)
    return await harness.start_worker(**options)


def when_full(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a call has found a limit full."""
    asked, run = threading.Event(), Database.run

    async def listen(self: Database, statement: Statement[Any]) -> Any:
        answer = await run(self, statement)
        if statement.name == "limits/acquire_limit" and answer.answer == "full":
            asked.set()
        return answer

    monkeypatch.setattr(Database, "run", listen)
    return asked


def note(path: str, line: str) -> str:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    return line


@lw.handler("child_steps", isolation="process", retry=SOON)
def child_steps(ctx: SyncContext, path: str) -> list[Any]:
    first = ctx.step("first", note, path, "first")
    if ctx.attempt == 1:
        os._exit(9)
    second = ctx.step("second", note, path, "second")
    return [first, second]


@lw.handler("async_child_steps", isolation="process", retry=SOON)
async def async_child_steps(ctx: Context, path: str) -> list[Any]:
    first = await ctx.step("first", note, path, "first")
    if ctx.attempt == 1:
        raise ValueError("once")
    second = await ctx.step("second", note, path, "second")
    return [first, second]


@lw.handler("child_refused", isolation="process", max_retries=0)
def child_refused(ctx: SyncContext, how: str) -> None:
    match how:
        case "large":
            ctx.step("big", lambda: "x" * 3_000_000)
        case "twice":
            ctx.step("one", int)
            ctx.step("one", int)
        case "limit":
            with ctx.limit("No Where"):
                pass


@lw.handler("child_unknown_limit", isolation="process", max_retries=0)
def child_unknown_limit(ctx: SyncContext, name: str) -> None:
    with ctx.limit("openai", name), ctx.limit(name):
        pass


@lw.handler("child_limit", isolation="process")
def child_limit(ctx: SyncContext) -> str:
    with ctx.limit("narrow"):
        return "held"


@lw.handler("async_child_limit", isolation="process")
async def async_child_limit(ctx: Context) -> str:
    async with ctx.limit("narrow"):
        return "held"


@lw.handler("child_finish", isolation="process", retry=SOON)
def child_finish(ctx: SyncContext, dsn: str, after: str) -> object:
    ctx.log("before the end")
    with psycopg.connect(dsn) as conn:
        ctx.guard(conn)
        conn.execute("insert into effect values (%s)", [ctx.attempt])
        ctx.finish(conn=conn, result={"by": "child"})
    if after == "die":
        os._exit(9)
    if after == "raise":
        raise ValueError("too late")
    if after == "linger":
        # Longer than a heartbeat takes to find the lease gone.
        threading.Event().wait(1.5)
        with psycopg.connect(dsn) as conn:
            conn.execute("insert into effect values (-1)")
    return {1, 2}


def use_after_finish(ctx: SyncContext, dsn: str) -> None:
    """Uses its context in every way between the finish and the commit."""
    ctx.log("before")
    with psycopg.connect(dsn) as conn, ctx.limit("narrow"):
        conn.execute("insert into effect values (1)")
        ctx.finish(conn=conn, result="done")
        with pytest.raises(Refused, match=r"ctx\.step was called after"):
            ctx.step("late", pytest.fail, "a step must not run")
        with pytest.raises(Refused, match=r"ctx\.save was called after"):
            ctx.save("late")
        with pytest.raises(Refused, match=r"ctx\.limit was called after"), ctx.limit("openai"):
            pytest.fail("a limit must not be had")
        ctx.progress(1, 2)
        ctx.log("late")


@lw.handler("child_after_finish", isolation="process", max_retries=0)
def child_after_finish(ctx: SyncContext, dsn: str) -> None:
    use_after_finish(ctx, dsn)


@lw.handler("child_retry", isolation="process", max_retries=0)
def child_retry(ctx: SyncContext) -> int:
    calls: list[int] = []

    def flaky(most: int) -> int:
        calls.append(1)
        if len(calls) < most:
            raise ConnectionError("busy")
        return len(calls)

    return ctx.retry(flaky, 3, policy=SOON)
