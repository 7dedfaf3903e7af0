"""An application with an end hook, for worker processes that are killed."""

from __future__ import annotations

from laneway import Context, EndedJob, Laneway

lw = Laneway()


@lw.handler("plain")
async def plain(ctx: Context) -> str:
    return "done"


@lw.on_end("plain")
async def tell(ctx: Context, job: EndedJob) -> str:
    return f"{job.id} {job.status}"
