"""The retention of finished jobs of a type."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from laneway.domain.duration import CENTURY_S, seconds_of
from laneway.errors import InvalidInput

WEEK: Final = timedelta(days=7)
MONTH: Final = timedelta(days=30)

Age = float | timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Ages in seconds (or as a timedelta) after which finished jobs are removed; None: never.

    `count`: in addition, only so many of the newest finished jobs of the type are kept.
    """

    completed: Age = WEEK
    cancelled: Age = WEEK
    failed: Age = MONTH
    count: int | None = None

    def __post_init__(self) -> None:
        for field in ("completed", "cancelled", "failed"):
            age = getattr(self, field)
            name = f"retention.{field}"
            if age is not None and not 0 <= seconds_of(age, name) <= CENTURY_S:
                raise InvalidInput(name, "must be from 0 seconds to 100 years")
        if self.count is not None and (
            type(self.count) is not int or not 0 <= self.count <= 2**31 - 1
        ):
            raise InvalidInput("retention.count", "must be a whole number, 0 or more")
