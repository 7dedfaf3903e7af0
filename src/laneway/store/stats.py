"""Statistics of jobs over time, as statements."""

from __future__ import annotations

from collections.abc import Collection

from laneway.domain.stats import Failure, Failures, Point, Series
from laneway.store.statement import Row, Statement


def count_ends(
    *,
    window_s: int,
    bucket_s: int,
    lanes: Collection[str] | None,
    job_type: str | None,
    bound: int,
    points: int,
    by_lane: bool = False,
) -> Statement[Series]:
    """Counts starts and ends within the window, from the newest `bound` outcomes."""

    def decode(rows: list[Row]) -> Series:
        is_capped = len(rows) == points or any(row[-1] for row in rows)
        return Series(window_s, bucket_s, is_capped, [Point(*row[:-1]) for row in reversed(rows)])

    return Statement(
        "stats/count_ends",
        decode,
        {
            "window_s": float(window_s),
            "bucket_s": float(bucket_s),
            "lanes": None if lanes is None else sorted(lanes),
            "job_type": job_type,
            "bound": bound,
            "points": points,
            "by_lane": by_lane,
        },
    )


def count_failures(
    *, window_s: int, lanes: Collection[str] | None, job_type: str | None, bound: int, limit: int
) -> Statement[Failures]:
    """Counts failures within the window by job type and error, from the newest `bound` outcomes."""

    def decode(rows: list[Row]) -> Failures:
        # There is always a row: its first column tells whether more outcomes exist.
        found = [Failure(*row[1:]) for row in rows if row[1] is not None]
        return Failures(window_s, rows[0][0], found)

    return Statement(
        "stats/count_failures",
        decode,
        {
            "window_s": float(window_s),
            "lanes": None if lanes is None else sorted(lanes),
            "job_type": job_type,
            "bound": bound,
            "limit": limit,
        },
    )
