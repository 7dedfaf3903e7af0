"""The operations on flows and events. A flow belongs to a workspace and to its submitter."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain.annotations import Doc
from laneway.domain.flow import ChangedFlow, Flow, FlowFilter, FlowGraph
from laneway.domain.job import DEFAULT_WORKSPACE, NAME_BYTES
from laneway.domain.page import Page
from laneway.domain.sent_event import (
    RETENTION_S,
    EventDelivery,
    EventKey,
    EventName,
    EventRetention,
)
from laneway.operations.operation import Operation, operation

_FLOWS: Final = "/flows"
_FLOW: Final = f"{_FLOWS}/{{flow_id}}"
# Jobs of a graph on one page.
MOST_JOBS: Final = 1000
Workspace = Annotated[str, MinLen(1), MaxLen(NAME_BYTES)]
Reason = Annotated[str, MinLen(1), MaxLen(2000), Doc("Why; kept with each job")]


@operation("GET", _FLOWS, permission="jobs:read", scope="flow", command="flows ls")
def list_flows(wanted: FlowFilter | None = None) -> Page[Flow]:
    """List the flows in reach, newest first."""


@operation("GET", _FLOW, permission="jobs:read", scope="flow", command="flows show")
def get_flow(
    flow_id: UUID,
    limit: Annotated[int, Interval(ge=1, le=MOST_JOBS), Doc("Most jobs on a page")] = 200,
    cursor: Annotated[str | None, MaxLen(32), Doc("The `next_cursor` of the page before")] = None,
) -> FlowGraph:
    """Show a flow with its jobs, their states and what each comes after; never their payloads."""


@operation(
    "POST",
    f"{_FLOW}/cancel",
    permission="jobs:cancel",
    scope="flow",
    body="FlowCancelRequest",
    command="flows cancel",
)
def cancel_flow(flow_id: UUID, reason: Reason | None = None) -> ChangedFlow:
    """Cancel all jobs of a flow that have not ended; running ones are asked to stop."""


@operation("POST", f"{_FLOW}/retry", permission="jobs:cancel", scope="flow", command="flows retry")
def retry_flow(flow_id: UUID) -> ChangedFlow:
    """Queue the failed and cancelled jobs of a flow again; each waits again for its parents."""


@operation(
    "POST",
    "/events",
    permission="events:send",
    scope="workspace",
    status=202,
    body="NewEvent",
    command="events send",
)
def send_event(
    name: EventName,
    key: EventKey = "",
    payload: Annotated[object, Doc("JSON that the waiting handler is given")] = None,
    workspace: Workspace = DEFAULT_WORKSPACE,
    retention_s: EventRetention = RETENTION_S,
) -> EventDelivery:
    """Send an event: jobs that wait for its name and key continue.

    It is kept, by default for a day, so that a job that begins to wait later takes it too.
    """


FLOWS: Final[tuple[Operation[Any, Any], ...]] = (list_flows, get_flow, cancel_flow, retry_flow)
