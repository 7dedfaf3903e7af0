"""How many jobs are where."""

from __future__ import annotations

from dataclasses import dataclass

from laneway.domain.states import Status


@dataclass(frozen=True, slots=True)
class StateCount:
    """Jobs in one state, counted up to a bound; if `is_capped`, there may be more than `count`."""

    status: Status
    count: int
    is_capped: bool

    def to_dict(self) -> dict[str, object]:
        return {"status": self.status.value, "count": self.count, "is_capped": self.is_capped}
