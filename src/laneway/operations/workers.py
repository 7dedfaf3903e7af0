"""The operations on the pause gate and on frozen lanes, and statistics.

By hand are `read_status` and `freeze_lanes`, and what concerns one job or one worker. The status
is filtered by lane and arranged for people. A freeze with an Idempotency-Key has several parts.
Jobs and workers may be named by text, and each has another scope.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from annotated_types import Interval, MaxLen

from laneway.domain.annotations import Doc
from laneway.domain.freeze import Thawed
from laneway.domain.lane import JobType, LaneName
from laneway.domain.overview import Gate
from laneway.domain.stats import Failures, Seconds, Series
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.operations.operation import Operation, operation

_WORKERS: Final = "/admin/workers"
_STATS: Final = "/admin/stats"


@operation(
    "POST", f"{_WORKERS}/pause", permission="workers:manage", scope="everywhere", command="pause"
)
def pause_claims() -> Gate:
    """Close the pause gate: no job is claimed until it opens."""


@operation(
    "POST", f"{_WORKERS}/resume", permission="workers:manage", scope="everywhere", command="resume"
)
def resume_claims() -> Gate:
    """Open the pause gate; drained lanes stay drained."""


@operation(
    "POST",
    f"{_WORKERS}/thaw",
    permission="workers:manage",
    scope="named lanes",
    field="lanes",
    body="ThawRequest",
    may_miss=True,
    command="thaw",
)
def thaw_lanes(
    lanes: Annotated[list[LaneName] | None, MaxLen(1000), Doc("null: all frozen lanes")] = None,
) -> list[Thawed]:
    """Restore frozen lanes."""


@operation(
    "GET",
    _STATS,
    permission="workers:view",
    scope="lanes",
    is_expensive=True,
    may_miss=True,
    command=None,
)
def read_stats(
    *,
    window_s: Seconds = 3600,
    bucket_s: Seconds = 60,
    lane: LaneName | None = None,
    job_type: JobType | None = None,
    by_lane: Annotated[bool, Doc("One point for all job types of a lane")] = False,
) -> Series:
    """Read starts, ends, waits and run times over time, of the lanes in reach.

    Buckets start at multiples of their length; a bucket as long as the window ends now.
    """


@operation(
    "GET",
    f"{_STATS}/failures",
    permission="workers:view",
    scope="lanes",
    is_expensive=True,
    may_miss=True,
    command="admin failures",
)
def read_failures(
    *,
    window_s: Seconds = 3600,
    lane: LaneName | None = None,
    job_type: JobType | None = None,
    top: Annotated[int, Interval(ge=1, le=LONGEST_PAGE), Doc("Maximum number")] = 20,
) -> Failures:
    """Group the failures of jobs in the lanes in reach by job type and error type.

    It examines about 10,000 failed jobs, the newest. `GET /jobs?job_type=…&error_type=…` lists the
    jobs of a group.
    """


WORKERS: Final[tuple[Operation[Any, Any], ...]] = (
    pause_claims, resume_claims, thaw_lanes, read_stats, read_failures,
)  # fmt: skip
