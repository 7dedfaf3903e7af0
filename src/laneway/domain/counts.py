"""Counts of jobs by state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from laneway.domain.annotations import Doc
from laneway.domain.states import Status

# Conditions of a filter that do not narrow counts.
NOT_COUNTED: Final = (
    "status",
    "worker",
    "q",
    "max_cost",
    "unit",
    "error_type",
    "flow",
    "was_approved",
    "ended_since",
    "ended_within",
)


@dataclass(frozen=True, slots=True)
class StateCount:
    """Jobs in one state."""

    status: Status
    count: int
    is_capped: Annotated[
        bool, Doc("Not all jobs of the state were examined: there may be more than `count`")
    ]
