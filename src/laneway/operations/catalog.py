"""All declared operations, by name."""

from __future__ import annotations

from typing import Any, Final

from laneway.operations.access import ACCESS
from laneway.operations.audit import list_audit_entries
from laneway.operations.flows import FLOWS, send_event
from laneway.operations.job_types import JOB_TYPES
from laneway.operations.lanes import LANES
from laneway.operations.limits import LIMITS
from laneway.operations.operation import Operation
from laneway.operations.schedules import SCHEDULES
from laneway.operations.webhooks import WEBHOOKS
from laneway.operations.workers import WORKERS

DECLARED: Final[dict[str, Operation[Any, Any]]] = {
    each.name: each
    for group in (
        LANES,
        LIMITS,
        SCHEDULES,
        ACCESS,
        JOB_TYPES,
        WORKERS,
        FLOWS,
        WEBHOOKS,
        (send_event, list_audit_entries),
    )
    for each in group
}
