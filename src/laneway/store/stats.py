"""What happened to jobs over time, as a statement."""

from __future__ import annotations

from collections.abc import Collection

from laneway.domain.stats import Failure, Failures, Point, Series
from laneway.store.statement import Row, Statement


def count_ends(
    *,
    window_s: float,
    bucket_s: float,
    lanes: Collection[str] | None,
    job_type: str | None,
    bound: int,
    points: int,
    by_lane: bool = False,
) -> Statement[Series]:
    """Starts and ends within the window, from the newest `bound` outcomes."""

    def decode(rows: list[Row]) -> Series:
        found = [Point(*row[:-1]) for row in reversed(rows)]
        return Series(found, len(rows) == points or any(row[-1] for row in rows))

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
    *, window_s: float, lanes: Collection[str] | None, job_type: str | None, bound: int, limit: int
) -> Statement[Failures]:
    """Failures within the window by job type and error, from the newest `bound` outcomes."""

    def decode(rows: list[Row]) -> Failures:
        # Without any there is a row all the same, for it tells whether all ends were looked at.
        return Failures([Failure(*row[1:]) for row in rows if row[1] is not None], rows[0][0])

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
