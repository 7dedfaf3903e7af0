"""Counts of jobs by state."""

from __future__ import annotations

from dataclasses import dataclass

from laneway.domain.states import Status


@dataclass(frozen=True, slots=True)
class StateCount:
    """The number of jobs in one state; if `is_capped`, there may be more."""

    status: Status
    count: int
    is_capped: bool

    def to_dict(self) -> dict[str, object]:
        return {"status": self.status.value, "count": self.count, "is_capped": self.is_capped}
