"""Handlers in child processes that return their trace and job."""

from __future__ import annotations

import logging

from laneway import Context, Laneway, SyncContext
from laneway.observability import tracing

lw = Laneway("postgresql://unused@nowhere/nothing")


@lw.handler("traced_apart", isolation="process")
async def traced_apart(ctx: Context) -> str | None:
    return tracing.traceparent()


@lw.handler("talks_apart", isolation="process")
def talks_apart(ctx: SyncContext) -> None:
    logging.getLogger("the.application").warning("from afar with password=hidden")
