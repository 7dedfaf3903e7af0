"""The wait of a failed job before its next attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from laneway.domain.duration import YEAR_S
from laneway.errors import InvalidInput

# Takes the number of the retry that would follow, from 1, and the error. Returns the seconds to
# wait before it, at most a year; None or False: no retry.
RetryFunction: TypeAlias = Callable[[int, BaseException], float | timedelta | None]

DEFAULT_MAX_RETRIES: Final = 3
# The largest exponent, as in `laneway.retry_delay`, so that both return the same wait.
MAX_STEPS: Final = 60
# `base * factor ** MAX_STEPS` fits a double precision number of PostgreSQL.
LARGEST_FACTOR: Final = 100_000


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """min(cap, base · factor^(n-1)) seconds, spread by ± jitter: 1, 2, 4 … 60 s by default."""

    base: float = 1.0
    cap: float = 60.0
    factor: float = 2.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        for name, low, high in (
            ("base", 0, YEAR_S),
            ("cap", self.base, YEAR_S),
            ("factor", 1, LARGEST_FACTOR),
            ("jitter", 0, 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise InvalidInput(f"retry.{name}", "must be a number")
            if not low <= value <= high:
                raise InvalidInput(f"retry.{name}", f"must be from {low} to {high:.0f}")

    def delay(self, n: int, rand: float) -> float:
        """Seconds to wait after the n-th charged failure (from 1); `rand` is from 0 to 1."""
        if n < 1:
            raise InvalidInput("n", "the first retry is number 1")
        wait = min(self.cap, self.base * float(self.factor) ** min(n - 1, MAX_STEPS))
        return wait * (1 + self.jitter * (2 * rand - 1))
