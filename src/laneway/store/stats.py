"""Statistics of jobs over time, as statements."""

from __future__ import annotations

from collections.abc import Collection

from laneway.domain.stats import TREND, Failure, Failures, Point, Series
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
    """Counts failures within the window by job type and error, from the newest `bound` failures."""
    bucket_s = window_s / TREND

    def decode(rows: list[Row]) -> Failures:
        # There is always a row: its first column tells whether more failures exist.
        found = [_failure(row[1:]) for row in rows if row[1] is not None]
        return Failures(window_s, rows[0][0], found, bucket_s)

    return Statement(
        "stats/count_failures",
        decode,
        {
            "window_s": float(window_s),
            "bucket_s": bucket_s,
            "lanes": None if lanes is None else sorted(lanes),
            "job_type": job_type,
            "bound": bound,
            "limit": limit,
        },
    )


def _failure(row: Row) -> Failure:
    lane, job_type, error_type, failures, first_at, last_at, example, counts = row
    return Failure(lane, job_type, error_type, failures, last_at, example, first_at, _trend(counts))


def _trend(counts: dict[str, int]) -> tuple[int, ...]:
    """The counts by age, in buckets, as numbers from the oldest bucket to the newest."""
    trend = [0] * TREND
    for age, count in counts.items():
        # The clock moves on within the statement, and may have been set back since an end.
        trend[TREND - 1 - min(max(int(age), 0), TREND - 1)] += count
    return tuple(trend)
