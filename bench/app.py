"""The application the benchmarks run: handlers that do as little as each figure allows."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from laneway import Context, Laneway

lw = Laneway()

NOOP = "bench_noop"
STAMP = "bench_stamp"
HOLD = "bench_hold"
LIMITED = "bench_limited"
LIMIT = "bench"


@lw.handler(NOOP)
async def noop(ctx: Context, text: str) -> None:
    """The no-op job that drains run."""


@lw.handler(LIMITED, limits=[LIMIT])
async def limited(ctx: Context, text: str) -> None:
    """The same no-op under a limit."""


@lw.handler(STAMP)
async def stamp(ctx: Context) -> int:
    """Return the time of its start, by the clock of the machine."""
    return time.time_ns()


@lw.handler(HOLD)
async def hold(ctx: Context) -> None:
    """Run until the worker stops."""
    await asyncio.Event().wait()


async def _idle(ctx: Context) -> None:
    """Never called: a worker with this handler serves one of the seeded lanes."""


for _job_type in ("ingestion", "projection", "restore"):
    lw.handler(_job_type)(_idle)


def _end_with_parent(parent_pipe: int) -> None:
    """End this process when the benchmark, at the other end of the pipe, has ended."""

    def watch() -> None:
        os.read(parent_pipe, 1)
        os._exit(1)

    threading.Thread(target=watch, name="parent pipe", daemon=True).start()


if "BENCH_PARENT_PIPE" in os.environ:
    _end_with_parent(int(os.environ.pop("BENCH_PARENT_PIPE")))
