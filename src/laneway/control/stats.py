"""Statistics of started and finished jobs and their failures, for charts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from laneway.domain.lane import check_job_type
from laneway.domain.stats import LONGEST_WINDOW_S, SHORTEST_BUCKET_S, Failures, Series
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.errors import InvalidInput
from laneway.store import stats as store
from laneway.store.database import Database

# Bounds of one query: rows read, and points returned.
BOUND: Final = 10_000
POINTS: Final = 5_000


async def series(
    db: Database,
    *,
    window_s: int = 3600,
    bucket_s: int = SHORTEST_BUCKET_S,
    lanes: Collection[str] | None = None,
    job_type: str | None = None,
    by_lane: bool = False,
    bound: int = BOUND,
) -> Series:
    """Counts and times within the window, per bucket, lane and, unless `by_lane`, job type.

    Buckets begin at whole multiples of their length; a bucket as long as the window ends now.
    """
    _check_window(window_s, job_type)
    if not SHORTEST_BUCKET_S <= bucket_s <= window_s:
        raise InvalidInput("bucket_s", f"must be from {SHORTEST_BUCKET_S} seconds to window_s")
    return await db.run(
        store.count_ends(
            window_s=window_s,
            bucket_s=bucket_s,
            lanes=lanes,
            job_type=job_type,
            bound=bound,
            points=POINTS,
            by_lane=by_lane,
        )
    )


async def failures(
    db: Database,
    *,
    window_s: int = 3600,
    lanes: Collection[str] | None = None,
    job_type: str | None = None,
    limit: int = 20,
    bound: int = BOUND,
) -> Failures:
    """Failures within the window, by job type and type of error, in lanes (None: any).

    It reads the newest failed jobs. Messages are left out, because they may contain secrets.
    """
    _check_window(window_s, job_type)
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LONGEST_PAGE}")
    return await db.run(
        store.count_failures(
            window_s=window_s, lanes=lanes, job_type=job_type, bound=bound, limit=limit
        )
    )


def _check_window(window_s: int, job_type: str | None) -> None:
    if not SHORTEST_BUCKET_S <= window_s <= LONGEST_WINDOW_S:
        raise InvalidInput(
            "window_s", f"must be from {SHORTEST_BUCKET_S} to {LONGEST_WINDOW_S} seconds"
        )
    if job_type is not None:
        check_job_type(job_type)
