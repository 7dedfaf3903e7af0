"""The operations on lanes."""

from __future__ import annotations

from typing import Annotated, Any, Final

from laneway.domain.annotations import Doc
from laneway.domain.change import Change, RollbackTarget
from laneway.domain.lane import JobType, Lane, LaneName, LaneSettings, TunedLane
from laneway.domain.lane_setup import LaneSetup, LaneTable
from laneway.domain.overview import LaneDetail, LaneStatus
from laneway.domain.page import Page
from laneway.operations.operation import Operation, operation

_LANES: Final = "/admin/workers/lanes"
_LANE: Final = f"{_LANES}/{{name}}"


@operation("GET", _LANES, permission="workers:view", scope="lanes", page=200, command="lanes ls")
def list_lanes() -> Page[LaneStatus]:
    """List the lanes in reach, each with its policy, its slots in use and what waits in it."""


@operation(
    "POST",
    _LANES,
    permission="workers:manage",
    scope="all lanes",
    status=201,
    location=_LANE,
    body="NewLane",
    defaults=Lane,
    command="lanes create",
)
def create_lane(name: LaneName, settings: LaneSettings = {}) -> Lane:  # noqa: B006
    """Create a lane; settings that are not given take a new lane's defaults.

    It takes job types from other lanes, so it needs the permission on all lanes.
    """


@operation("PUT", _LANES, permission="workers:manage", scope="all lanes", command="lanes load")
def load_lanes(
    lanes: LaneTable,
    dry_run: Annotated[bool, Doc("Return the changes without making them")] = False,
) -> LaneSetup:
    """Make these the lanes, in one change.

    A lane that is not among them is deleted, or drained while jobs run or wait in it. `default` and
    `analysis` stay as they are unless given. A lane without `enabled` or `job_types` keeps its own.
    """


@operation("GET", _LANE, permission="workers:view", scope="lane", command="lanes show")
def get_lane(name: LaneName) -> LaneDetail:
    """Return one lane with its policy, its slots in use and what waits by type and priority."""


@operation(
    "PATCH",
    _LANE,
    permission="workers:manage",
    scope="lane",
    all_lanes_for=("job_types",),
    body="LaneChange",
    command="lanes set",
)
def tune_lane(name: LaneName, change: LaneSettings) -> TunedLane:
    """Change what is given, in force at every worker's next claim; `enabled` drains and resumes.

    `job_types` moves types between lanes, so it needs the permission on all lanes.
    """


@operation(
    "POST", f"{_LANE}/take", permission="workers:manage", scope="all lanes", command="lanes move"
)
def take_type(name: LaneName, job_type: JobType) -> Lane:
    """Move a job type, with its waiting jobs, into the lane; this needs all lanes."""


@operation(
    "GET",
    f"{_LANE}/history",
    permission="workers:manage",
    scope="lane",
    is_expensive=True,
    command="lanes history",
)
def list_lane_changes(name: LaneName) -> Page[Change]:
    """List every change of the lane that is kept, newest first."""


@operation(
    "POST",
    f"{_LANE}/rollback",
    permission="workers:manage",
    scope="all lanes",
    field="change",
    command="lanes rollback",
)
def roll_back_lane(name: LaneName, to: RollbackTarget = None) -> Change | None:
    """Restore an earlier state of the lane; that may move job types, so it needs all lanes."""


@operation(
    "GET", "/admin/workers/types/lane", permission="workers:view", scope="lanes", command="lanes of"
)
def find_lane(job_type: JobType) -> Lane:
    """Return the lane that takes a job type, published or not."""


LANES: Final[tuple[Operation[Any, Any], ...]] = (
    list_lanes, create_lane, load_lanes, get_lane, tune_lane, take_type, list_lane_changes,
    roll_back_lane, find_lane,
)  # fmt: skip
