"""The lanes as this worker last read them, and which of its handlers run in which."""

from __future__ import annotations

from collections.abc import Iterable

from laneway.engine.registry import Handler
from laneway.store.lanes import ControlState


def served(
    state: ControlState, handlers: Iterable[Handler], only: frozenset[str] | None
) -> dict[str, list[Handler]]:
    """Lane → the handlers this worker runs in it; `only` narrows to the lanes named."""
    lanes: dict[str, list[Handler]] = {}
    for handler in handlers:
        lane = state.lane_of(handler.job_type)
        if only is None or lane in only:
            lanes.setdefault(lane, []).append(handler)
    return lanes
