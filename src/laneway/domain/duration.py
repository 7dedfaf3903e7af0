"""Durations in seconds, and the longest ones that settings accept."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Final

from laneway.domain.text import shown
from laneway.errors import InvalidInput

HOUR_S: Final = 3600.0
DAY_S: Final = 86400.0
# Leap years fit. The functions of the schema have the same figures.
YEAR_S: Final = 366 * DAY_S
CENTURY_S: Final = 100 * YEAR_S


def seconds_of(duration: object, field: str = "duration") -> float:
    """A number of seconds or a timedelta in seconds; InvalidInput for anything else."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    try:
        if isinstance(duration, (int, float)) and not isinstance(duration, bool):
            return float(duration)
    except OverflowError:
        return math.inf
    raise InvalidInput(field, f"must be a number of seconds, or a timedelta, not {shown(duration)}")


def check_duration(duration: object, field: str) -> float:
    """The seconds of a timeout, an expiry or a maximum age: more than 0, at most a year."""
    seconds = seconds_of(duration, field)
    if not 0 < seconds <= YEAR_S:
        raise InvalidInput(field, "must be more than 0 seconds and at most a year")
    return seconds


def check_wait(duration: object, field: str) -> float:
    """The seconds of a sleep or of the timeout of a wait, at most a century.

    Less than 0 counts as 0: `until - now` is negative when a handler runs again after its sleep.
    """
    seconds = seconds_of(duration, field)
    if not seconds <= CENTURY_S:
        raise InvalidInput(
            field, f"must be at most {CENTURY_S:.0f} seconds (100 years), not {shown(duration)}"
        )
    return max(0.0, seconds)
