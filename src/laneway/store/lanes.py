"""Lanes and the pause gate, as statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from laneway.domain.approval import is_analysis
from laneway.domain.job import Progress
from laneway.domain.lane import ANALYSIS_LANE, Lane, LaneSettings
from laneway.domain.overview import ActiveJob, Gate, PriorityLoad
from laneway.store.arrays import array_of_numbers, array_of_texts
from laneway.store.leases import Range
from laneway.store.statement import Row, Statement, first_column, nothing, one_row, rows_of, scalar
from laneway.store.workers import Presence

_COLUMNS: Final = tuple(LaneSettings.__annotations__)


@dataclass(frozen=True, slots=True)
class ControlState:
    """Lanes and pause gate as of one control version.

    `has_webhooks`: there is or was a webhook, so that workers run deliveries.
    """

    version: int
    paused: bool
    lanes: dict[str, Lane]
    has_webhooks: bool = False
    _by_type: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lane_by_type = {name: lane.name for lane in self.lanes.values() for name in lane.job_types}
        object.__setattr__(self, "_by_type", lane_by_type)

    def lane_of(self, job_type: str) -> str:
        """The lane of a job type, or of the analyses of one."""
        if is_analysis(job_type):
            return ANALYSIS_LANE
        return self._by_type.get(job_type, "default")


def _lane(stored: Mapping[str, Any]) -> Lane:
    """The lane of a row as JSON; a newer schema may have more columns."""
    known = {column: stored[column] for column in ("name", *_COLUMNS, "updated_by")}
    updated_at = datetime.fromisoformat(stored["updated_at"])
    return Lane(**{**known, "job_types": tuple(known["job_types"])}, updated_at=updated_at)


def read() -> Statement[ControlState]:
    """All lanes, the pause gate and the version they belong to."""

    def decode(rows: list[Row]) -> ControlState:
        lanes = [_lane(r[2]) for r in rows]
        version, paused, _, has_webhooks = rows[0]
        return ControlState(version, paused, {lane.name: lane for lane in lanes}, has_webhooks)

    return Statement("lanes/read_lanes", decode)


class Peek(NamedTuple):
    """The result of a worker process's idle poll."""

    version: int
    paused: bool
    due: list[str]
    promoted: list[str] | None
    next_due_s: float | None
    # Whether the worker is drained; None: its presence was not recorded.
    is_drained: bool | None = None


def peek(
    job_types: Sequence[str], ranges: Sequence[Range] = (), presence: Presence | None = None
) -> Statement[Peek]:
    """Promotes due delayed jobs; returns which of these types and ranges have jobs.

    Also records the presence of the worker process, if given.
    """
    return Statement(
        "lanes/peek_lanes" if presence is None else "lanes/peek_and_touch",
        one_row(Peek),
        {
            "types": list(job_types),
            "ranged": array_of_texts([one.job_type for one in ranges]),
            "fresh": array_of_numbers([int(one.fresh) for one in ranges]),
            "los": array_of_numbers([one.lo for one in ranges]),
            "floors": array_of_numbers([one.floor for one in ranges]),
            "highs": array_of_numbers([one.hi for one in ranges]),
            **({} if presence is None else presence.params),
        },
    )


def find_below_floors(floors: Sequence[tuple[str, int, int]]) -> Statement[set[str]]:
    """The job types among (job type, rank, floor) that have a job below the floor."""
    return Statement(
        "lanes/find_below_floors",
        lambda rows: {row[0] for row in rows},
        {
            "types": array_of_texts([job_type for job_type, _, _ in floors]),
            "ranks": array_of_numbers([rank for _, rank, _ in floors]),
            "floors": array_of_numbers([floor for _, _, floor in floors]),
        },
    )


def find_horizon() -> Statement[int]:
    """The id of the oldest transaction that may still hide a job from claims."""
    return Statement("lanes/find_horizon", lambda rows: int(rows[0][0]))


def create(lane: Lane, by: str) -> Statement[bool | None]:
    """Creates a lane unless the name is taken."""
    row = {"name": lane.name, **_settings(lane), "updated_by": by}
    return Statement("lanes/create_lane", scalar, {"lane": json.dumps(row)})


def _settings(lane: Lane) -> dict[str, object]:
    return {column: getattr(lane, column) for column in _COLUMNS}


def tune(name: str, change: Mapping[str, object], by: str) -> Statement[Lane | None]:
    """Changes the columns in `change` (already validated); None for an unknown lane."""
    params: dict[str, Any] = {column: change.get(column) for column in _COLUMNS}
    if params["job_types"] is not None:
        params["job_types"] = list(params["job_types"])
    return Statement(
        "lanes/tune_lane",
        lambda rows: _lane(rows[0][0]) if rows else None,
        {"name": name, "by": by, "columns": list(change), **params},
    )


def assign_types(
    given: Sequence[tuple[str, str | None]], by: str, like: Lane | None = None
) -> Statement[list[str]]:
    """Creates missing lanes like one, and adds (lane, type) pairs of types without a lane.

    All in one change. Without a type the lane is only created. Returns the lanes created.
    """
    return Statement(
        "lanes/assign_types",
        first_column,
        {
            "lanes": [lane for lane, _ in given],
            "job_types": [job_type for _, job_type in given],
            "like": json.dumps(_settings(like or Lane("new"))),
            "by": by,
        },
    )


def move_type(lane: str, job_type: str, by: str) -> Statement[list[str]]:
    """Moves a job type with its waiting jobs to a lane; returns the changed lanes."""
    return Statement(
        "lanes/move_type", first_column, {"lane": lane, "job_type": job_type, "by": by}
    )


def lock() -> Statement[None]:
    """Keeps claims and other changes of lanes from committing until the transaction ends."""
    return Statement("lanes/lock_lanes", nothing)


def count_running() -> Statement[dict[str, int]]:
    """Running jobs by lane."""
    return Statement("lanes/count_running", lambda rows: {row[0]: row[1] for row in rows})


def find_waiting(job_types: Sequence[str]) -> Statement[set[str]]:
    """The job types among these that have waiting jobs."""
    return Statement(
        "lanes/find_waiting", lambda rows: {row[0] for row in rows}, {"types": list(job_types)}
    )


def replace_all(
    states: Sequence[Mapping[str, object]], deleted: Sequence[str], by: str
) -> Statement[None]:
    """Deletes lanes, then creates or overwrites the lanes of these states, in one change."""
    rows = [{**state, "updated_by": by} for state in states]
    return Statement(
        "lanes/load_lanes", nothing, {"lanes": json.dumps(rows), "deleted": list(deleted), "by": by}
    )


def pause(paused: bool, by: str) -> Statement[None]:
    """Closes or opens the pause gate."""
    return Statement("control/pause_claims", nothing, {"paused": paused, "by": by})


def read_gate() -> Statement[Gate]:
    return Statement("control/read_gate", one_row(Gate))


class LaneLoad(NamedTuple):
    """Used slots of a lane, and one of its waiting job types, if any."""

    lane: str
    job_type: str | None
    running: int
    depth: int | None
    is_capped: bool | None
    oldest_s: float | None


def measure(bound: int = 10_000) -> Statement[list[LaneLoad]]:
    """Load per lane and waiting job type; `is_capped`: more than `depth` jobs wait."""
    return Statement("lanes/measure_lanes", rows_of(LaneLoad), {"bound": bound})


def measure_lane(lane: str, bound: int = 10_000) -> Statement[list[PriorityLoad]]:
    """Due jobs of one lane per job type and priority, the highest first."""
    return Statement(
        "lanes/measure_lane",
        lambda rows: [PriorityLoad(r[0], r[2], r[3], r[4], priority=r[1]) for r in rows],
        {"lane": lane, "bound": bound},
    )


def active(limit: int = 1000) -> Statement[list[ActiveJob]]:
    """Running jobs by lane, longest first."""
    return Statement(
        "lanes/list_active_jobs", lambda rows: [_active(row) for row in rows], {"limit": limit}
    )


def _active(row: Row) -> ActiveJob:
    (lane, job_id, job_type, attempt, worker_id, worker, claimed_at, lease_until, held_s, requested,
     stage, done, total, message, retries) = row  # fmt: skip
    has_progress = (stage, done, total, message) != (None, None, None, None)
    return ActiveJob(
        job_id, lane, job_type, attempt, retries, worker_id, worker, claimed_at, lease_until,
        round(held_s, 3), requested,
        Progress.of(done, total, message, stage) if has_progress else None,
    )  # fmt: skip
