"""How many jobs started and ended, minute by minute, for charts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from laneway.domain.lane import check_job_type
from laneway.domain.stats import Series
from laneway.errors import InvalidInput
from laneway.store import stats as store
from laneway.store.database import Database

LONGEST_WINDOW_S: Final = 86_400
SHORTEST_BUCKET_S: Final = 60
# What one look costs, however many jobs have ended: so many rows, and so many points answered.
BOUND: Final = 20_000
POINTS: Final = 5_000


async def series(
    db: Database,
    *,
    window_s: int = 3600,
    bucket_s: int = SHORTEST_BUCKET_S,
    lanes: Collection[str] | None = None,
    job_type: str | None = None,
    bound: int = BOUND,
) -> Series:
    """What happened within the window, per bucket, lane (None: any) and job type."""
    if not SHORTEST_BUCKET_S <= window_s <= LONGEST_WINDOW_S:
        raise InvalidInput("window_s", f"must be from {SHORTEST_BUCKET_S} to {LONGEST_WINDOW_S}")
    if not SHORTEST_BUCKET_S <= bucket_s <= window_s:
        raise InvalidInput("bucket_s", f"must be from {SHORTEST_BUCKET_S} to window_s")
    if job_type is not None:
        check_job_type(job_type)
    return await db.run(
        store.count_ends(
            window_s=window_s,
            bucket_s=bucket_s,
            lanes=lanes,
            job_type=job_type,
            bound=bound,
            points=POINTS,
        )
    )
