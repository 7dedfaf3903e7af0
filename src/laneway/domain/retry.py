"""How long a failed job waits before its next attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from laneway.errors import InvalidInput

LONGEST_WAIT: Final = 366 * 86400


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """min(cap, base · factor^(n-1)) seconds, spread by ± jitter: 1, 2, 4 … 60 s by default."""

    base: float = 1.0
    cap: float = 60.0
    factor: float = 2.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        for name, low, high in (
            ("base", 0, LONGEST_WAIT),
            ("cap", self.base, LONGEST_WAIT),
            ("factor", 1, 1_000_000),
            ("jitter", 0, 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise InvalidInput(f"retry.{name}", "must be a number")
            if not low <= value <= high:
                raise InvalidInput(f"retry.{name}", f"must be from {low} to {high}")

    def delay(self, n: int, rand: float) -> float:
        """Seconds to wait after the n-th charged failure (from 1); `rand` is from 0 to 1."""
        if n < 1:
            raise InvalidInput("n", "the first retry is number 1")
        # A float power of a bounded exponent is one machine operation, whatever n is.
        try:
            wait = min(self.cap, self.base * float(self.factor) ** min(n - 1, 2**31))
        except OverflowError:
            wait = self.cap if self.base else 0.0
        return wait * (1 + self.jitter * (2 * rand - 1))
