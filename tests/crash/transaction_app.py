"""Handlers that write application rows and finish their job in the same transaction.

`points` lists where a job is killed, one point after the other: the handler announces the point
and waits to be killed. The next attempt passes a point that was announced before; at the end of
the row all points are passed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

from laneway import Context, SyncContext
from laneway.errors import StaleAttempt
from tests.crash.app import QUICKLY, TICK_S, lw, note, passed, running
from tests.crash.drivers import ASYNC, SYNC

__all__ = ["lw"]

PARTS = (1, 2, 3)
# A little longer than a commit takes.
RACE_S = 0.004


class Wanted(Exception):
    """An intended failure of the handler."""


def row(ctx: Context | SyncContext, part: int) -> str:
    return (
        "insert into crash.ledger (job, attempt, part)"
        f" values ('{ctx.job_id}', {ctx.attempt}, {part})"
    )


def next_point(ctx: Context | SyncContext, points: list[str]) -> str | None:
    """The first point that was not announced yet."""
    if gate("over").exists():
        return None
    return next((point for point in points if not os.path.lexists(_mark(ctx, point))), None)


def announce(ctx: Context | SyncContext, point: str) -> None:
    """Announce that this process is at the point. A new link appears atomically with its target."""
    with contextlib.suppress(FileExistsError):
        os.symlink(str(os.getpid()), _mark(ctx, point))


def _mark(ctx: Context | SyncContext, point: str) -> Path:
    return Path(os.environ["CRASH_SINK"], "points", f"{ctx.job_id}.{point}")


def gate(name: str) -> Path:
    return Path(os.environ["CRASH_SINK"], "points", name)


def passed_now(way: Path) -> None:
    while not way.exists():
        time.sleep(TICK_S)


def die_soon(ctx: SyncContext) -> None:
    """Kill this process during its commit, or just before or after."""
    note("death", ctx)
    delay = random.uniform(0.0, RACE_S)
    timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGKILL])
    timer.daemon = True
    timer.start()


@lw.handler("ledger", retry=QUICKLY, max_retries=200)
async def ledger(ctx: Context, op: str, driver: str, points: list[str]) -> None:
    point = next_point(ctx, points)
    with running(ctx):
        async with ASYNC[driver](os.environ["CRASH_SINK_DSN"]) as own:
            await own.execute(row(ctx, 1))
            if point in ("stale", "second"):
                announce(ctx, point)
                await passed(gate(point))
            await own.execute(row(ctx, 2))
            try:
                await ctx.finish(conn=own.conn, result={"by": ctx.attempt})
            except StaleAttempt:
                note("notified", ctx)
                raise
            await own.execute(row(ctx, 3))
            if point in ("before", "rollback", "raise"):
                announce(ctx, point)
            if point == "before":
                await passed(gate("over"))
            elif point == "rollback":
                await own.rollback()
                return
            elif point == "raise":
                raise Wanted
            await own.commit()
            if point == "after":
                announce(ctx, point)
                await passed(gate("over"))


def write_ledger(ctx: SyncContext, driver: str, points: list[str]) -> None:
    point = next_point(ctx, points)
    with running(ctx), SYNC[driver](os.environ["CRASH_SINK_DSN"]) as own:
        own.execute(row(ctx, 1))
        if point in ("stale", "second"):
            announce(ctx, point)
            passed_now(gate(point))
        own.execute(row(ctx, 2))
        try:
            ctx.finish(conn=own.conn, result={"by": ctx.attempt})
        except StaleAttempt:
            note("notified", ctx)
            raise
        own.execute(row(ctx, 3))
        if point in ("before", "during", "rollback", "raise"):
            announce(ctx, point)
        if point == "before":
            passed_now(gate("over"))
        elif point == "during":
            die_soon(ctx)
        elif point == "rollback":
            own.rollback()
            return
        elif point == "raise":
            raise Wanted
        own.commit()
        if point in ("during", "after"):
            announce(ctx, point)
            passed_now(gate("over"))


@lw.handler("ledger_thread", retry=QUICKLY, max_retries=200)
def ledger_thread(ctx: SyncContext, op: str, driver: str, points: list[str]) -> None:
    write_ledger(ctx, driver, points)


@lw.handler("ledger_child", retry=QUICKLY, max_retries=200, lane="isolated", isolation="process")
def ledger_child(ctx: SyncContext, op: str, driver: str, points: list[str]) -> None:
    write_ledger(ctx, driver, points)
