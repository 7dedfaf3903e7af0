"""What runs during an upgrade, with the code of any version: workers, and a client that submits.

As a program it submits until the file `over` is there: python upgrade_app.py
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from laneway import Context, Laneway

lw = Laneway()
SINK = Path(os.environ["UPGRADE_SINK"])
CLIENTS = 3
PAUSE_S = 0.02


def note(kind: str, **what: Any) -> None:
    """One line in a file of this process: a kill never loses half of one."""
    line = json.dumps({"pid": os.getpid(), "at": time.time(), **what}).encode() + b"\n"
    path = SINK / f"{kind}-{os.getpid()}.jsonl"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


@lw.handler("work")
async def work(ctx: Context, op: str, ms: int) -> str:
    note("run", job=str(ctx.job_id), attempt=ctx.attempt)
    await asyncio.sleep(ms / 1000)
    return op


async def submit_until_over(client: int) -> None:
    for n in range(1_000_000):
        if (SINK / "over").exists():
            return
        began = time.monotonic()
        job = await lw.submit("work", {"op": f"{os.getpid()}-{client}-{n}", "ms": n % 40})
        note("submit", job=str(job.id), wait_s=time.monotonic() - began)
        await asyncio.sleep(PAUSE_S)


async def main() -> None:
    async with lw:
        await asyncio.gather(*(submit_until_over(client) for client in range(CLIENTS)))


if __name__ == "__main__":
    asyncio.run(main())
