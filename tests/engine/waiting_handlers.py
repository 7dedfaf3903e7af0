"""Handlers that wait, for workers with child processes and for real worker processes."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from laneway import Context, Laneway, SyncContext
from laneway.domain.handler_signals import Suspended
from tests.engine.child_features import note
from tests.support.worker_harness import SOON

lw = Laneway()


@lw.handler("part")
async def part(ctx: Context, n: int) -> int:
    return n * n


@lw.handler("child_waits", isolation="process", retry=SOON)
def child_waits(ctx: SyncContext, path: str) -> dict[str, Any]:
    note(path, f"run {ctx.attempt}")
    ctx.step("once", note, path, "step")
    ctx.sleep("nap", 0.05)
    parts = ctx.run_all("parts", [part.job(n=n) for n in range(3)])
    decision = ctx.wait_event("reviewed", key=path)
    return {"parts": parts, "decision": decision}


@lw.handler("async_child_waits", isolation="process", retry=SOON)
async def async_child_waits(ctx: Context, path: str) -> dict[str, Any]:
    note(path, f"run {ctx.attempt}")
    await ctx.step("once", note, path, "step")
    await ctx.sleep("nap", 0.05)
    parts = await ctx.run_all("parts", [part.job(n=n) for n in range(3)])
    decision = await ctx.wait_event("reviewed", key=path)
    return {"parts": parts, "decision": decision}


@lw.handler("child_wrong", isolation="process", retry=SOON)
def child_wrong(ctx: SyncContext, place: str) -> None:
    if place == "child":
        ctx.sleep("a", "soon")  # type: ignore[arg-type]
    # The database refuses this one.
    ctx.run_all("parts", [("part", {"n": 1}, {"workspace": "other"})])


@lw.handler("killed_between", retry=SOON)
async def killed_between(ctx: Context, path: str) -> list[int]:
    """Its worker is killed after the sub-jobs are stored and before the attempt has ended."""
    try:
        parts = await ctx.run_all("parts", [part.job(n=n) for n in range(20)])
    except Suspended:
        if not Path(path).exists():
            note(path, str(os.getpid()))
            # The verdict must not be written before the kill.
            time.sleep(600)  # noqa: ASYNC251 -- blocks the event loop on purpose
        raise
    await asyncio.sleep(0)
    return parts
