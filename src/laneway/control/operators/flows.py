"""Operations on flows and events, done in a database."""

from __future__ import annotations

from uuid import UUID

from laneway.control import events, flows
from laneway.control.bulk import PrincipalLimits
from laneway.control.operators.table import Operator, implement, implement_list
from laneway.domain.flow import ChangedFlow
from laneway.domain.sent_event import RETENTION_S
from laneway.operations import flows as operations


async def _retry(who: Operator, flow_id: UUID) -> ChangedFlow:
    quota = who.quota
    limits = None if quota is None else PrincipalLimits(quota.principal_id, lambda _: quota.bounds)
    return await flows.retry(who.db, flow_id, by=who.by, limits=limits)


implement_list(
    operations.list_flows,
    lambda who, page, wanted=None: flows.listing(
        who.db, wanted, within=who.reach, limit=page.limit, cursor=page.cursor
    ),
)
implement(
    operations.get_flow,
    lambda who, flow_id, limit=200, cursor=None: flows.graph(
        who.db, flow_id, limit=limit, cursor=cursor
    ),
)
implement(
    operations.cancel_flow,
    lambda who, flow_id, reason=None: flows.cancel(who.db, flow_id, by=who.by, reason=reason),
)
implement(operations.retry_flow, _retry)
implement(
    operations.send_event,
    lambda who, name, key="", payload=None, workspace="default", retention_s=RETENTION_S: (
        events.send(
            who.db,
            name,
            key=key,
            payload=payload,
            workspace=workspace,
            retention_s=retention_s,
            by=who.by,
            quota=who.quota,
        )
    ),
)
