"""What happened to jobs over time, as a statement."""

from __future__ import annotations

from collections.abc import Collection

from laneway.domain.stats import Point, Series
from laneway.store.statement import Row, Statement


def count_ends(
    *,
    window_s: float,
    bucket_s: float,
    lanes: Collection[str] | None,
    job_type: str | None,
    bound: int,
    points: int,
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
        },
    )
