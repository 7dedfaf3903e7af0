"""Operations on the pause gate and on frozen lanes, and statistics, done in a database."""

from __future__ import annotations

from laneway.control import freeze, lanes, stats
from laneway.control.operators.table import Operator, implement
from laneway.domain.stats import Failures, Series
from laneway.operations import workers as operations


async def _read_stats(
    who: Operator,
    *,
    window_s: int = 3600,
    bucket_s: int = 60,
    lane: str | None = None,
    job_type: str | None = None,
    by_lane: bool = False,
) -> Series:
    return await stats.series(
        who.db,
        window_s=window_s,
        bucket_s=bucket_s,
        lanes=who.within(lane),
        job_type=job_type,
        by_lane=by_lane,
    )


async def _read_failures(
    who: Operator,
    *,
    window_s: int = 3600,
    lane: str | None = None,
    job_type: str | None = None,
    top: int = 20,
) -> Failures:
    return await stats.failures(
        who.db, window_s=window_s, lanes=who.within(lane), job_type=job_type, limit=top
    )


implement(operations.pause_claims, lambda who: lanes.pause(who.db, by=who.by))
implement(operations.resume_claims, lambda who: lanes.resume_all(who.db, by=who.by))
implement(operations.thaw_lanes, lambda who, lanes=None: freeze.thaw(who.db, lanes, by=who.by))
implement(operations.read_stats, _read_stats)
implement(operations.read_failures, _read_failures)
