"""The handlers of README.md, for workers in Python."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from laneway import Analysis, Cancel, Context, Laneway, Retry, RetryPolicy, Snooze

lw = Laneway()

SOON = RetryPolicy(base=0.05, cap=0.05, factor=1, jitter=0)
TICK_S = 0.01
LANES = os.environ["LANEWAY_CONFORMANCE_LANES"].split(",")


class NoLuck(Exception):
    """The error that handlers raise."""


def note(what: str, ctx: Context, text: str | None = None) -> None:
    line = {"what": what, "job": str(ctx.job_id), "attempt": ctx.attempt, "note": text}
    fd = os.open(os.environ["LANEWAY_CONFORMANCE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(fd, json.dumps(line).encode() + b"\n")
    finally:
        os.close(fd)


@contextmanager
def running(ctx: Context) -> Iterator[None]:
    note("begin", ctx, ctx.payload.get("tag"))
    try:
        yield
    except asyncio.CancelledError:
        note("stopped", ctx)
        raise
    except Exception:
        note("end", ctx)
        raise
    note("end", ctx)


async def passed(gate: str) -> None:
    path = Path(os.environ["LANEWAY_CONFORMANCE_GATES"], gate)
    while not path.exists():  # noqa: ASYNC110 - another process opens it
        await asyncio.sleep(TICK_S)


async def echo(ctx: Context, value: Any, tag: str = "") -> Any:
    with running(ctx):
        return value


async def fail(ctx: Context, times: int, tag: str = "") -> dict[str, int]:
    with running(ctx):
        if ctx.attempt <= times:
            raise NoLuck(f"no luck in attempt {ctx.attempt}")
        return {"attempt": ctx.attempt}


async def again(ctx: Context, after: float, tag: str = "") -> dict[str, int]:
    with running(ctx):
        if ctx.attempt == 1:
            raise Retry("busy", after=after)
        return {"attempt": ctx.attempt}


async def snooze(ctx: Context, seconds: float, tag: str = "") -> dict[str, int]:
    with running(ctx):
        if ctx.attempt == 1:
            raise Snooze(seconds)
        return {"attempt": ctx.attempt}


async def give_up(ctx: Context, reason: str, tag: str = "") -> None:
    with running(ctx):
        raise Cancel(reason)


async def hold(ctx: Context, gate: str, tag: str = "") -> dict[str, int]:
    with running(ctx):
        await passed(gate)
        return {"attempt": ctx.attempt}


async def deaf(ctx: Context, gate: str, tag: str = "") -> dict[str, int]:
    with running(ctx):
        waiting = asyncio.ensure_future(passed(gate))
        while not waiting.done():
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError:
                continue
        return {"attempt": ctx.attempt}


async def resume(ctx: Context, gate: str, tag: str = "") -> dict[str, Any]:
    with running(ctx):
        found = ctx.checkpoint
        if found is None:
            await ctx.save({"at": 1, "text": "é✓"})
            note("saved", ctx)
            await passed(gate)
        return {"found": found}


async def steps(ctx: Context, tag: str = "") -> dict[str, Any]:
    def one() -> dict[str, int]:
        note("one", ctx)
        return {"n": 1}

    def two() -> int:
        note("two", ctx)
        return ctx.attempt

    with running(ctx):
        first = await ctx.step("one", one)
        if ctx.attempt == 1:
            raise NoLuck("between the steps")
        return {"one": first, "two": await ctx.step("two", two)}


async def report(ctx: Context, gate: str, tag: str = "") -> None:
    with running(ctx):
        await ctx.progress(3, 4, "three é")
        ctx.log("first")
        ctx.log.warning("second é")
        note("reported", ctx)
        await passed(gate)


async def chatty(ctx: Context, times: int, tag: str = "") -> dict[str, int]:
    with running(ctx):
        for n in range(1, times + 1):
            await ctx.save({"at": n})
        return {"saved": times}


async def slow(ctx: Context, tag: str = "") -> None:
    with running(ctx):
        await asyncio.Event().wait()


async def sleep(ctx: Context, seconds: float, tag: str = "") -> dict[str, int]:
    with running(ctx):
        await asyncio.sleep(seconds)
        return {"attempt": ctx.attempt}


async def not_json(ctx: Context, tag: str = "") -> Any:
    with running(ctx):
        return object()


async def facts(ctx: Context, tag: str = "") -> dict[str, Any]:
    with running(ctx):
        return {
            "max_retries": ctx.max_retries,
            "is_last_attempt": ctx.is_last_attempt,
            "tags": ctx.tags,
            "created_by": ctx.created_by or "",
        }


async def typed(ctx: Context, count: int, tag: str = "") -> int:
    with running(ctx):
        return count


async def limited(ctx: Context, tag: str = "") -> None:
    with running(ctx):
        async with ctx.limit("conformance"):
            note("in", ctx)
            await asyncio.sleep(0.02)
            note("out", ctx)


async def patient(ctx: Context, times: int, tag: str = "") -> dict[str, int]:
    calls = 0

    async def call() -> dict[str, int]:
        nonlocal calls
        calls += 1
        note("call", ctx)
        if calls <= times:
            raise NoLuck(f"no luck in call {calls}")
        return {"calls": calls}

    with running(ctx):
        found: dict[str, int] = await ctx.retry(call, tries=3, policy=SOON)
        return found


async def waits(ctx: Context, tag: str = "") -> dict[str, object]:
    async def look() -> list[int]:
        note("look", ctx)
        return [1, 2]

    with running(ctx):
        found: list[int] = await ctx.step("look", look)
        jobs = [(f"{ctx.lane}.echo", {"value": n}) for n in found]
        parts = await ctx.run_all("parts", jobs)
        await ctx.sleep("nap", 0.05)
        try:
            await ctx.wait_event("never", timeout=0.05)
        except TimeoutError:
            return {"parts": parts, "timed_out": True}
        return {"parts": parts, "timed_out": False}


async def gather(ctx: Context, key: str, tag: str = "") -> dict[str, object]:
    with running(ctx):
        before = [
            one.result if one.is_completed else str(one.status) async for one in ctx.results()
        ]
        sent = await ctx.wait_event("gathered", key=key, timeout=60)
        return {"before": before, "sent": sent}


async def planned(ctx: Context, cost: float, tag: str = "") -> dict[str, float]:
    with running(ctx):
        return {"spent": cost}


async def plan(ctx: Context, cost: float) -> Analysis:
    note("analyzed", ctx)
    return Analysis(
        plan={"for": cost}, cost=Decimal(str(cost)), currency="EUR", warnings=["not cheap"]
    )


PLAIN = (echo, fail, again, snooze, give_up, hold, deaf, resume, steps, report, sleep)

for lane in LANES:
    for handler in (*PLAIN, chatty, not_json, facts, typed, limited, patient, waits, gather):
        lw.handler(f"{lane}.{handler.__name__}", lane=lane, retry=SOON)(handler)
    lw.handler(f"{lane}.slow", lane=lane, retry=SOON, timeout=0.3)(slow)
    lw.handler(f"{lane}.planned", lane=lane, retry=SOON, approval=True)(planned).analyze(plan)
