"""Which handlers of a worker run in which lane, by the lanes that it last read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from laneway.domain.approval import analysed_type
from laneway.domain.missing import hint
from laneway.engine.claim.lane_loop import Claimable
from laneway.observability.safe_logger import SafeLogger
from laneway.store.lanes import ControlState

log = SafeLogger("laneway")

H = TypeVar("H", bound=Claimable)


def served(
    state: ControlState, handlers: Iterable[H], only: frozenset[str] | None
) -> dict[str, list[H]]:
    """The handlers of this worker by lane; `only` restricts them to the named lanes.

    A worker that serves the lane of a job type serves its analyses too, whatever their lane.
    """
    lanes: dict[str, list[H]] = {}
    for handler in handlers:
        lane = state.lane_of(handler.job_type)
        own = state.lane_of(analysed_type(handler.job_type))
        if only is None or lane in only or own in only:
            lanes.setdefault(lane, []).append(handler)
    return lanes


def warn_of_missing(only: frozenset[str] | None, state: ControlState) -> None:
    """Log the lanes that a worker should serve but that do not exist."""
    for lane in sorted((only or frozenset()) - state.lanes.keys()):
        nearest = hint("lane", lane, state.lanes)
        log.warning("lane %s does not exist and is not served; %s", lane, nearest)
