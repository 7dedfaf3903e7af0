"""The application that `laneway worker` runs."""

from __future__ import annotations

import os

from bench.peers import side
from laneway import Context, Laneway, SyncContext

lw = Laneway()
is_cpu = os.environ.get("PEERS_WORK", "noop").startswith("cpu")
report = side.Report() if "PEERS_REPORT" in os.environ else None


async def handle(ctx: Context, at: int, text: str) -> None:
    """Count the job; wait where the workload says so."""
    assert report is not None
    await report.handle(at)


def handle_in_thread(ctx: SyncContext, at: int, text: str) -> None:
    """Keep a processor busy: a plain function, as users write it."""
    assert report is not None
    report.handle_in_thread(at)


lw.handler("bench")(handle_in_thread if is_cpu else handle)


@lw.on_start
async def tell_ready(resources: object) -> None:
    """Report once the worker has connected."""
    if report is not None:
        side.end_with_benchmark()
        report.ready()
