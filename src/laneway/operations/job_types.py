"""The operations on published job types and the applications that publish them.

`forget_publisher` is written by hand: its path ends in a name that may contain slashes.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from annotated_types import MaxLen

from laneway.domain.annotations import Doc
from laneway.domain.job_type import PublishedType, Publisher
from laneway.domain.lane import JOB_TYPE_BYTES, LaneName
from laneway.domain.page import Page
from laneway.operations.operation import Operation, operation

OfType = Annotated[Annotated[str, MaxLen(JOB_TYPE_BYTES)] | None, Doc("Only of this job type")]


@operation(
    "GET",
    "/admin/workers/types",
    permission="workers:view",
    scope="lanes",
    may_miss=True,
    command="admin workers types",
)
def list_job_types(*, lane: LaneName | None = None) -> Page[PublishedType]:
    """List the published job types of the lanes in reach, by name."""


@operation(
    "GET",
    "/admin/workers/publishers",
    permission="workers:view",
    scope="everywhere",
    command="admin workers publishers",
)
def list_publishers(
    job_type: OfType = None,
    stale_only: Annotated[bool, Doc("Only those with `is_stale`")] = False,
) -> Page[Publisher]:
    """List applications and the job types they publish, by job type."""


JOB_TYPES: Final[tuple[Operation[Any, Any], ...]] = (list_job_types, list_publishers)
