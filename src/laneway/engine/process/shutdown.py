"""Ends the jobs of a stopping worker: they finish within the grace or are released."""

from __future__ import annotations

import asyncio

from laneway.engine.lease.completer import Completer
from laneway.engine.run.executor import Executor

STOP_S = 2.0


async def finish_or_release(
    executor: Executor, completer: Completer, grace_s: float, hurry: asyncio.Event | None
) -> set[str]:
    """Let jobs finish within the grace and release the rest; return the released job types."""
    await _finish_within(executor, grace_s, hurry)
    released = {run.handler.job_type for run in executor.active.values()}
    for run in list(executor.active.values()):
        executor.stop(run, "shutdown")
    if executor.active:
        await _finish_within(executor, STOP_S / 2, None)
    for run in list(executor.active.values()):
        executor.abandon(run)
    if executor.active:
        # Killed children end quickly; threads may never end.
        await _finish_within(executor, STOP_S / 4, None)
    await completer.flush(STOP_S)
    return released


async def _finish_within(executor: Executor, grace_s: float, hurry: asyncio.Event | None) -> None:
    waits = {asyncio.ensure_future(executor.idle.wait())}
    if hurry is not None:
        waits.add(asyncio.ensure_future(hurry.wait()))
    try:
        await asyncio.wait(waits, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
