"""The handlers of the Python workers: `laneway remote-worker fleet:lw --server HOST:PORT`.

worker.ts has the same job types. A job runs on any worker, and may continue on one of the other
language. The work is a stand-in: a part that contains `hold` ends when the file named by
FLEET_GATE exists.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from laneway import Context, Laneway

lw = Laneway()


@lw.handler("checksum", lane="fleet")
async def checksum(ctx: Context, text: str) -> dict[str, str]:
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "by": "python"}


@lw.handler("transcode", lane="fleet", max_retries=5)
async def transcode(ctx: Context, parts: list[str]) -> dict[str, object]:
    """Work through the parts; after a crash, the next worker gets only those that are left."""
    done: list[str] = (ctx.checkpoint or {"done": []})["done"]
    async for part in ctx.track(parts, durable=True):
        gate = os.environ.get("FLEET_GATE")
        while "hold" in part and gate and not Path(gate).exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.05)
        done.append(f"{part} by python")
        await ctx.save({"done": done})
    return {"done": done}
