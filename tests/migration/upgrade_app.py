"""Programs that run during an upgrade, with the code of any version: workers and a client.

As a program it submits until the file `over` is there: python upgrade_app.py
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from laneway import Context, Laneway, Snooze

lw = Laneway()
SINK = Path(os.environ["UPGRADE_SINK"])
CLIENTS = 3
PAUSE_S = 0.02


def note(kind: str, **what: Any) -> None:
    """Write one line to a file of this process: a kill never leaves half a line."""
    line = json.dumps({"pid": os.getpid(), "at": time.time(), **what}).encode() + b"\n"
    path = SINK / f"{kind}-{os.getpid()}.jsonl"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


MANY = 20


@lw.handler("work", max_retries=MANY)
async def work(ctx: Context, op: str, ms: int) -> str:
    note("run", job=str(ctx.job_id), attempt=ctx.attempt)
    await asyncio.sleep(ms / 1000)
    return op


@lw.handler("tracked", max_retries=MANY)
async def tracked(ctx: Context, op: str, ms: int) -> str:
    note("run", job=str(ctx.job_id), attempt=ctx.attempt)
    async for _ in ctx.track(range(3)):
        ctx.log.info("one more")
        await asyncio.sleep(ms / 1000)
    return op


@lw.handler("again", max_retries=MANY)
async def again(ctx: Context, op: str, ms: int) -> str:
    """Runs thrice: it fails, it is snoozed, it ends."""
    note("run", job=str(ctx.job_id), attempt=ctx.attempt, again=ctx.attempt < 3)
    if ctx.attempt == 1:
        raise RuntimeError("the first attempt always fails")
    if ctx.attempt == 2:
        raise Snooze(0.1)
    return op


KINDS: list[tuple[str, dict[str, Any]]] = [
    *[("work", {})] * 6,
    ("work", {"delay": 0.2, "priority": 5}),
    ("tracked", {}),
    ("again", {}),
]

# Missing in the first landed version.
if hasattr(Context, "limit"):

    @lw.handler("limited", max_retries=MANY, limits=["anthropic"])
    async def limited(ctx: Context, op: str, ms: int) -> str:
        note("run", job=str(ctx.job_id), attempt=ctx.attempt)
        async with ctx.limit("openai"):
            await asyncio.sleep(ms / 1000)
        return await ctx.step("end", lambda: op)

    KINDS += [("limited", {}), ("limited", {"concurrency_key": "one at a time"})]


async def submit_until_over(client: int) -> None:
    for n in range(1_000_000):
        if (SINK / "over").exists():
            return
        kind, options = KINDS[n % len(KINDS)]
        payload = {"op": f"{os.getpid()}-{client}-{n}", "ms": n % 40}
        began = time.monotonic()
        job = await lw.submit(kind, payload, **options)
        note("submit", job=str(job.id), wait_s=time.monotonic() - began)
        await asyncio.sleep(PAUSE_S)


async def main() -> None:
    async with lw:
        await asyncio.gather(*(submit_until_over(client) for client in range(CLIENTS)))


if __name__ == "__main__":
    asyncio.run(main())
