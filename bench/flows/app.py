"""The application of this benchmark: handlers that sleep and that wait for events."""

from __future__ import annotations

import time

from bench.app import lw
from laneway import Context

__all__ = ["lw"]

ASLEEP = "bench_asleep"
LISTENING = "bench_listening"
EVENT = "bench_event"
# Longer than any run.
SLEEP_S = 86_400.0


@lw.handler(ASLEEP)
async def asleep(ctx: Context) -> None:
    """Sleep until the benchmark is over."""
    await ctx.sleep("night", SLEEP_S)


@lw.handler(LISTENING)
async def listening(ctx: Context) -> int:
    """Wait for the event with the job's id; return the nanoseconds from its sending to this run."""
    sent = await ctx.wait_event(EVENT, key=str(ctx.job_id))
    return time.time_ns() - int(sent["at"])
