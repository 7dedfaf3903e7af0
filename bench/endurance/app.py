"""The handler of the steady load, in the application of the other benchmarks."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.app import lw
from bench.endurance.waits import WaitLog
from laneway import Context, Retention
from laneway.engine.leader import retention

TIMED = "bench_timed"
# Retention deletes nothing younger.
KEEP_S = 60.0

__all__ = ["TIMED", "lw"]

_log = WaitLog(Path(os.environ["BENCH_WAIT_LOG"])) if "BENCH_WAIT_LOG" in os.environ else None
# Short runs have shorter pauses between the walks of retention.
if "BENCH_WALK_S" in os.environ:
    retention.WALK_S = float(os.environ["BENCH_WALK_S"])  # type: ignore[misc]


@lw.handler(TIMED, retention=Retention(completed=KEEP_S))
async def timed(ctx: Context, at: int, text: str) -> None:
    """Note the time since `at`, just before the submit."""
    now = time.time_ns()
    if _log is not None:
        _log.add(now, now - at)


@lw.on_stop
def close_log(resources: object) -> None:
    if _log is not None:
        _log.close()
