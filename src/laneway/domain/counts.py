"""Counts of jobs by state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from laneway.domain.annotations import Doc
from laneway.domain.states import Status


@dataclass(frozen=True, slots=True)
class StateCount:
    """Jobs in one state."""

    status: Status
    count: int
    is_capped: Annotated[
        bool, Doc("Not all jobs of the state were examined: there may be more than `count`")
    ]
